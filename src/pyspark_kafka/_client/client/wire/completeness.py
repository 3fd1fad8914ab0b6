"""Responses compared with their requests: every requested thing has one entry. Pure: no sockets, no clock.

Brokers of Apache Kafka leave nothing out. A gateway that filters or a server that is only starting may, and so does a
damaged name. What is left out is not known, which is neither success nor absence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pyspark_kafka.errors import ProtocolError, listed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_K = TypeVar("_K")
_V = TypeVar("_V")


def match_entries(asked: Collection[_K], entries: Iterable[tuple[_K, _V]], request: str, address: str) -> dict[_K, _V]:
    """Return the entry of each requested thing, in the order of the request; other entries are ignored.

    Args:
        asked: such as topics or topic-partitions.
        entries: what the response has, with its content.
        request: the name of the request, for errors.
        address: of the broker, for errors.

    Raises:
        ProtocolError: something has no entry, or more than one; another response may be complete.
    """
    found: dict[_K, _V] = {}
    wanted = dict.fromkeys(asked)
    doubled: list[_K] = []
    for key, content in entries:
        if key in found:
            doubled.append(key)
        elif key in wanted:
            found[key] = content
    missing = [key for key in wanted if key not in found]
    if missing:
        raise response_incomplete(request, address, f"lacks {listed(missing)}")
    if doubled:
        raise response_incomplete(request, address, f"names {listed(doubled)} twice")
    return {key: found[key] for key in wanted}


def response_incomplete(request: str, address: str, problem: str) -> ProtocolError:
    """Build the error for a response that does not fit its request.

    Args:
        request: the name of the request.
        address: of the broker.
        problem: a verb and an object, such as "lacks t-0".
    """
    return ProtocolError(
        f"The response of {address} to {request} {problem}. Nothing of it was used.",
        condition="RESPONSE_INCOMPLETE",
        hint="Check proxies and gateways between this machine and the broker.",
        retriable=True,
        parameters={"broker": address, "request": request},
    )
