"""SASL PLAIN: user name and password as they are. Pure. Source: RFC 4616."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._client.client.login.mechanism import Refusal

if TYPE_CHECKING:
    from pyspark_kafka._client.options import PlainLogin


class PlainMechanism:
    """One exchange of PLAIN: one message, and an empty response."""

    name = "PLAIN"

    def __init__(self, login: PlainLogin) -> None:
        self._login = login
        self._is_done = False

    def auth_bytes(self) -> bytes:
        """Return the only message: no authorization id, the name, the password (as Java's `PlainSaslClient`)."""
        return f"\0{self._login.username}\0{self._login.password.reveal()}".encode()

    def receive(self, auth_bytes: bytes) -> None:  # noqa: ARG002 - see below
        """Take the server's response, which proves nothing, and is empty.

        Bytes of a server that sends some, as services that speak Kafka's protocol may, are passed over, as by Java's
        client and librdkafka.
        """
        self._is_done = True

    def is_done(self) -> bool:
        """Return whether the server has responded."""
        return self._is_done

    def is_authenticated(self) -> bool:
        """Return whether the server has responded."""
        return self._is_done

    def refusal(self) -> Refusal:
        """Return nothing but the hint."""
        return Refusal(hint="Check the user name and the password (kafka.sasl.jaas.config).")
