"""The targets of logins: messages of SASL servers, JAAS configurations, tokens, and answers of OAuth servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fuzzing.draw import Draw
from fuzzing.oracles import outcome_of, require
from pyspark_kafka._client.client.login.errors import credentials_refused, handshake_refused
from pyspark_kafka._client.client.login.mechanism import ExchangeError
from pyspark_kafka._client.client.login.oauth import OAuthMechanism
from pyspark_kafka._client.client.login.scram import MAX_ITERATIONS, ScramMechanism
from pyspark_kafka._client.client.login.tokens.claims import parse_claims
from pyspark_kafka._client.client.login.tokens.endpoint import read_answer
from pyspark_kafka._client.client.login.tokens.token import Token
from pyspark_kafka._client.options import ScramLogin, Secret, TokenEndpoint, parse_login

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka.records._variant import Kernel

# In no message that a mutation makes by chance.
PLANTED = "Pl4nted-S3cret-of-the-fuzzer"
NONCE = "fuzzer"
FIRST = f"r={NONCE}server,s=c2FsdA==,i=4096".encode()
SCRAM_FIRST, SCRAM_FINAL, OAUTH, MECHANISMS = range(4)
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM", "GSSAPI")
_MAX_ERROR = 8_000
_ENDPOINT = TokenEndpoint("https://idp.example/token", "client", Secret(PLANTED))


def sasl(data: bytes, variants: Sequence[Kernel]) -> None:  # noqa: ARG001 - every target is called alike
    """One byte for the step, then a server's message: nobody is trusted who does not know the password."""
    draw = Draw(data)
    step = draw.pick((SCRAM_FIRST, SCRAM_FINAL, OAUTH, MECHANISMS))
    message = draw.rest()
    if step == MECHANISMS:
        offered = message.decode("utf-8", "replace").split(",")
        _shown(str(handshake_refused(33, "SASL", "PLAIN", offered, broker="b:1")))
    elif step == OAUTH:
        exchange = OAuthMechanism(Token(Secret(PLANTED), 0.0), clock=lambda: 0.0)
        exchange.receive(message)
        require(exchange.is_authenticated() is not bool(message), "a refusal is taken for success")
        _shown(str(credentials_refused(58, "SASL", exchange, message.decode("utf-8", "replace"), broker="b:1")))
    else:
        _scram(message, is_final=step == SCRAM_FINAL)


def _scram(message: bytes, *, is_final: bool) -> None:
    exchange = ScramMechanism(ScramLogin("user", Secret(PLANTED), "SCRAM-SHA-256"), nonce=NONCE)
    if is_final:
        exchange.receive(FIRST)
    try:
        exchange.receive(message)
    except ExchangeError as error:
        _shown(str(error))
    else:
        require(not is_final, "a server is trusted that does not know the password")
        require(exchange.auth_bytes().startswith(b"c=biws,r=" + NONCE.encode()), "the proof is for another nonce")
        count = int(message.split(b",i=")[1].split(b",")[0])
        require(4096 <= count <= MAX_ITERATIONS, "too few or too many iterations")
    require(not exchange.is_authenticated(), "a server is trusted that does not know the password")


def jaas(data: bytes, variants: Sequence[Kernel]) -> None:  # noqa: ARG001 - every target is called alike
    """One byte for the mechanism, then a configuration: a login, or a sentence that repeats nothing of it."""
    draw = Draw(data)
    mechanism = draw.pick(_MECHANISMS)
    text = draw.rest().decode("utf-8", "replace")
    try:
        login = parse_login(text, mechanism, {"kafka.sasl.oauthbearer.token.endpoint.url": "https://idp.example/t"})
    except ValueError as error:
        _shown(str(error))
    else:
        require(login.mechanism == mechanism, "it is a login of another mechanism")
        _shown(repr(login), within=1 << 18)


def oauth_token(data: bytes, variants: Sequence[Kernel]) -> None:  # noqa: ARG001 - every target is called alike
    """One byte for the form, then a token, or the status and the body of a server: a result or a typed error."""
    draw = Draw(data)
    if draw.flag():
        status, body = draw.number(2), draw.rest()
        outcome = outcome_of(lambda: read_answer(_ENDPOINT, status, body))
        if outcome.error is not None:
            _shown(str(outcome.error))
        return
    token = draw.rest().decode("latin-1")
    try:
        claims = parse_claims(token)
    except ValueError as error:
        require(str(error).isprintable() and len(str(error)) < 200, "an error shows what is in a token")
    else:
        require(bool(claims.subject) and claims.expires_at is not None, "a token lacks a claim")
        _shown(claims.described(0.0), within=1 << 14)


def _shown(text: str, *, within: int = _MAX_ERROR) -> None:
    require(PLANTED not in text, "an error has a secret in it")
    require(len(text) <= within, "an error is as long as what a server sends")
    require(text.isprintable(), "an error has control characters in it")
