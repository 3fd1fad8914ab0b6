"""SASL SCRAM-SHA-256 and SCRAM-SHA-512: a proof of the password, which is never sent, and the server's proof in return.

An exchange of its own instead of a library's: kafka-python's takes any iteration count up to a million and compares the
server's signature byte by byte, and the package scramp normalizes passwords, which Kafka's brokers do not, and knows
nothing of delegation tokens. The cryptography is from `hashlib` and `hmac`. Pure but for the random nonce.

Source: RFC 5802, RFC 7677, KIP-84, KIP-48; Java's `ScramSaslClient` and `ScramFormatter`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.login.mechanism import ExchangeError, Refusal, shown

if TYPE_CHECKING:
    from pyspark_kafka._client.options import ScramLogin

# RFC 7677, chapter 4, and Java's ScramMechanism: fewer would let whoever listens guess the password.
MIN_ITERATIONS = 4096
# Kafka's controller stores at most 16,384 (ScramControlManager). A hostile broker could have a client compute for
# minutes: this many take a tenth of a second.
MAX_ITERATIONS = 100_000
# Names, nonces and salts together have some 200 bytes.
_MAX_MESSAGE = 8192
# base64 of "n,,": no channel binding, no authorization id.
_CHANNEL = "c=biws"
_ALGORITHMS = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}

_VALUE = r"[^,\x00]+"
_EXTENSIONS = rf"(?:,[A-Za-z]+={_VALUE})*"
_SERVER_FIRST = re.compile(
    rf"r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+),s=(?P<salt>[A-Za-z0-9+/]+={{0,2}}),i=(?P<count>[1-9][0-9]{{0,9}}){_EXTENSIONS}"
)
_SERVER_FINAL = re.compile(rf"v=(?P<signature>[A-Za-z0-9+/]+={{0,2}}){_EXTENSIONS}")
_SERVER_ERROR = re.compile(rf"e=(?P<error>{_VALUE}){_EXTENSIONS}")


class ScramMechanism:
    """One exchange of SCRAM.

    Args:
        login: user name and password, or the id and the key of a delegation token.
        nonce: printable characters without a comma; None makes a random one.
    """

    def __init__(self, login: ScramLogin, *, nonce: str | None = None) -> None:
        self.name = login.mechanism
        self._login = login
        self._algorithm = _ALGORITHMS[login.mechanism]
        self._nonce = nonce or secrets.token_urlsafe(24)
        self._to_send = f"n,,{self._first_bare}"
        self._server_signature: bytes | None = None
        self._is_done = False

    @property
    def _first_bare(self) -> str:
        extension = ",tokenauth=true" if self._login.delegation_token else ""
        return f"n={escape_name(self._login.username)},r={self._nonce}{extension}"

    def auth_bytes(self) -> bytes:
        """Return the client's first or final message."""
        return self._to_send.encode()

    def receive(self, auth_bytes: bytes) -> None:
        """Take the server's first or final message.

        Raises:
            ExchangeError: it is malformed, requires too few or too many iterations, does not prove that the server
                knows the password, or is a refusal.
        """
        message = _text(auth_bytes)
        refused = _SERVER_ERROR.fullmatch(message)
        if refused is not None:
            raise ExchangeError(f'the server answered "{shown(refused["error"])}"', is_refusal=True)
        if self._server_signature is None:
            self._prove(message)
        else:
            self._check_proof(message, self._server_signature)
            self._is_done = True

    def is_done(self) -> bool:
        """Return whether the server's proof was right."""
        return self._is_done

    def is_authenticated(self) -> bool:
        """Return whether the server's proof was right."""
        return self._is_done

    def refusal(self) -> Refusal:
        """Return nothing but the hint: brokers do not say whether the name or the password is wrong."""
        if self._login.delegation_token:
            return Refusal(
                hint=(
                    "Check the id and the key of the delegation token (username and password in "
                    "kafka.sasl.jaas.config) and whether it has expired: kafka-delegation-tokens --describe."
                )
            )
        return Refusal(
            hint=(
                "Check the user name and the password (kafka.sasl.jaas.config). A user has a password for each SCRAM "
                f"mechanism: list this user's mechanisms with kafka-configs --describe --entity-type users, and set "
                f"kafka.sasl.mechanism (now '{self.name}') to one of them."
            )
        )

    def _prove(self, server_first: str) -> None:
        if server_first.startswith("m="):
            raise ExchangeError("the server asks for an extension of SCRAM that no Kafka client has (m=)")
        found = _SERVER_FIRST.fullmatch(server_first)
        if found is None:
            raise ExchangeError("the server's first message is malformed")
        nonce, iterations = found["nonce"], int(found["count"])
        # The same nonce again would be a recorded exchange.
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise ExchangeError("the server's nonce does not begin with the client's, or adds nothing to it")
        if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
            raise ExchangeError(
                f"the server asks for {iterations} iterations; {MIN_ITERATIONS} to {MAX_ITERATIONS} are accepted"
            )
        salt = _decoded(found["salt"])
        without_proof = f"{_CHANNEL},r={nonce}"
        message = f"{self._first_bare},{server_first},{without_proof}".encode()
        salted = hashlib.pbkdf2_hmac(self._algorithm, self._login.password.reveal().encode(), salt, iterations)
        client_key = self._hmac(salted, b"Client Key")
        client_signature = self._hmac(hashlib.new(self._algorithm, client_key).digest(), message)
        proof = bytes(left ^ right for left, right in zip(client_key, client_signature, strict=True))
        self._server_signature = self._hmac(self._hmac(salted, b"Server Key"), message)
        self._to_send = f"{without_proof},p={base64.b64encode(proof).decode()}"

    @staticmethod
    def _check_proof(server_final: str, expected: bytes) -> None:
        found = _SERVER_FINAL.fullmatch(server_final)
        if found is None:
            raise ExchangeError("the server's final message is malformed")
        if not hmac.compare_digest(_decoded(found["signature"]), expected):
            raise ExchangeError("the server's signature is wrong: it does not know the password, so it is not trusted")

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._algorithm)


def escape_name(name: str) -> str:
    """Return a user name as SCRAM messages have it.

    Like Java's client and unlike RFC 5802, names and passwords are not normalized (SASLprep): brokers compare bytes.

    Source: `saslname` in RFC 5802, chapter 5.1; Java's `ScramFormatter.saslName`.

    Example:
        >>> escape_name("a=b,c")
        'a=3Db=2Cc'
    """
    return name.replace("=", "=3D").replace(",", "=2C")


def _text(message: bytes) -> str:
    if len(message) > _MAX_MESSAGE:
        raise ExchangeError(f"the server's message has {len(message)} bytes, more than {_MAX_MESSAGE}")
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise ExchangeError("the server's message is not UTF-8") from None


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ExchangeError("the server's message has malformed base64") from None
