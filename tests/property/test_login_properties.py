"""Logins under any input: a configuration is read back, and no message of a server is trusted that proves nothing."""

from __future__ import annotations

from base64 import b64encode

import jwt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kit.costs import processor_s
from pyspark_kafka._client.client.login.mechanism import ExchangeError
from pyspark_kafka._client.client.login.oauth import OAuthMechanism
from pyspark_kafka._client.client.login.scram import ScramMechanism, escape_name
from pyspark_kafka._client.client.login.tokens.claims import parse_claims
from pyspark_kafka._client.client.login.tokens.token import Claims, Token
from pyspark_kafka._client.options import ScramLogin, Secret, parse_login

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
# Java's strings in quotes end with their line.
TEXTS = st.text(st.characters(exclude_characters="\0\r\n", exclude_categories=["Cs"]), min_size=1, max_size=40)


def quoted(text: str, quote: str) -> str:
    return quote + text.replace("\\", "\\\\").replace(quote, "\\" + quote) + quote


@given(username=TEXTS, password=TEXTS, quote=st.sampled_from("\"'"), is_token=st.booleans())
@example(username="//", password="/* */;='\"\\", quote='"', is_token=False)  # noqa: S106 - of this test
def test_quoted_settings_of_a_configuration_are_read_back(
    username: str, password: str, quote: str, *, is_token: bool
) -> None:
    secret = f"literal:{password}"
    text = f"{SCRAM} required username={quoted(username, quote)} password={quoted(secret, quote)} tokenauth={is_token};"
    login = parse_login(text, "SCRAM-SHA-256")
    assert login == ScramLogin(username, Secret(password), "SCRAM-SHA-256", is_token)


@pytest.mark.parametrize("piece", ["/**/", "/*", "//\n", "a=", '"', "\\", 'a="b" ', "'\\", ";"])
def test_reading_a_configuration_takes_time_in_proportion_to_its_length(piece: str) -> None:
    def read() -> None:
        for end in ("", '"', ";", "/*"):
            with pytest.raises(ValueError, match=r"\w"):
                parse_login(f"{SCRAM} required " + piece * (100_000 // len(piece)) + end, "SCRAM-SHA-256")

    assert processor_s(read, times=1) < 4


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
@example(b"v=" + b64encode(bytes(64)))
def test_no_message_makes_scram_trust_a_server(message: bytes) -> None:
    exchange = ScramMechanism(ScramLogin("u", Secret("p"), "SCRAM-SHA-512"), nonce="n")
    exchange.receive(b"r=nserver,s=c2FsdA==,i=4096")
    with pytest.raises(ExchangeError):
        exchange.receive(message)
    assert not exchange.is_authenticated()


@given(TEXTS)
@example("a,b=c=2C")
def test_escaped_name_has_no_sign_of_a_message_and_is_read_back(name: str) -> None:
    escaped = escape_name(name)
    assert "," not in escaped
    assert escaped.replace("=2C", ",").replace("=3D", "=") == name


@given(st.binary(min_size=1, max_size=300))
def test_no_message_makes_a_refused_token_accepted(message: bytes) -> None:
    exchange = OAuthMechanism(Token(Secret("a.b.c"), 0.0), clock=lambda: 0.0)
    exchange.receive(message)
    assert not exchange.is_authenticated()
    assert exchange.refusal().known.isprintable()


@given(
    subject=st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip),
    expires_at=st.integers(0, 10**11),
    audience=st.lists(st.text(max_size=5), min_size=1, max_size=3),
)
def test_claims_that_were_signed_are_read_back(subject: str, expires_at: int, audience: list[str]) -> None:
    token = jwt.encode({"sub": subject, "exp": expires_at, "aud": audience}, "k" * 32)
    found = parse_claims(token)
    assert found == Claims(subject, audience=tuple(audience), expires_at=float(expires_at))
    assert found.described(0.0).isprintable()
