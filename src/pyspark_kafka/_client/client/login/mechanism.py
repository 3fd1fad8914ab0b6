"""The common parts of all SASL mechanisms: their interface, their error, and the display of a server's text.

Pure: no sockets, no clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pyspark_kafka.errors import printable

if TYPE_CHECKING:
    from pyspark_kafka._client.options import Secret

# What a server may say of itself in an error: enough for any real broker, and no more than a line.
_SHOWN = 300


@dataclass(frozen=True, slots=True)
class Refusal:
    """The explanation of a refusal, as far as this side has one.

    Attributes:
        known: sentences.
        hint: what to do; empty takes the hint of the broker's code.
        is_retriable: whether the same login may succeed immediately, with a new token.
        sent: a secret that the server got, and that its words may repeat.
    """

    known: str = ""
    hint: str = ""
    is_retriable: bool = False
    sent: Secret | None = None


class SaslMechanism(Protocol):
    """The client's side of one exchange: it sends first, then the two sides take turns.

    Attributes:
        name: the mechanism that the handshake names.
    """

    name: str

    def auth_bytes(self) -> bytes:
        """Return what to send next."""
        ...

    def receive(self, auth_bytes: bytes) -> object:
        """Take the server's response.

        Raises:
            ExchangeError: it is not valid, or it is a refusal.
        """
        ...

    def is_done(self) -> bool:
        """Return whether nothing is left to send."""
        ...

    def is_authenticated(self) -> bool:
        """Return whether the exchange ended with success."""
        ...

    def refusal(self) -> Refusal:
        """Return this side's explanation of a refusal; called once, when the server has refused."""
        ...


class ExchangeError(Exception):
    """A server's message that ends the exchange; its text is a clause that repeats no secret.

    Attributes:
        is_refusal: whether the server refused the credentials; otherwise its message is not valid.
    """

    def __init__(self, reason: str, *, is_refusal: bool = False) -> None:
        super().__init__(reason)
        self.is_refusal = is_refusal


def shown(text: str) -> str:
    r"""Return a server's text in the form that errors repeat it: one line, printable, cut if it is long.

    Example:
        >>> shown("no\x1b[2J way")
        'no\\x1b[2J way'
    """
    return printable(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
