"""Changes of single responses, for `Wire.changes`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kit.network.frames import Answer
from kit.network.wire import Change

Address = tuple[str, int]


def lying(api: str, change: Callable[[Any], None], *, times: int | None = None) -> Change:
    """Return a change of fields: the decoded responses of a name are given to a function, the first `times` of them."""
    return _each(api, lambda answer: answer.edit(change), times)


def throttled(milliseconds: int, *apis: str) -> Change:
    """Return a change that sets the throttle time of responses with these names."""

    def throttle(response: Any) -> None:
        response.throttle_time_ms = milliseconds

    def change(answer: Answer) -> None:
        if answer.api in apis:
            answer.edit(throttle)

    return change


def flipped(api: str, bit: int, *, times: int | None = None) -> Change:
    """Return a change that flips one bit of the responses of a name; bits count from behind the correlation id."""

    def flip(answer: Answer) -> None:
        body = bytearray(answer.body)
        body[4 + bit // 8] ^= 1 << bit % 8
        answer.body = bytes(body)

    return _each(api, flip, times)


def lost(api: str, *, times: int | None = 1) -> Change:
    """Return a change that forgets a connection while a response of this name is in flight: the broker has acted."""

    def lose(answer: Answer) -> None:
        answer.is_lost = True

    return _each(api, lose, times)


def cut(api: str, at: int, *, times: int | None = 1) -> Change:
    """Return a change that resets a connection behind this number of bytes of a response of this name."""

    def break_off(answer: Answer) -> None:
        answer.cut_at = at

    return _each(api, break_off, times)


def readdressed(addresses: Callable[[Address], Address]) -> Change:
    """Return a change that replaces the addresses of brokers in responses, such as by those of proxies."""

    def readdress(found: Any) -> None:
        # A coordinator that was not found has no port.
        if found.port > 0:
            found.host, found.port = addresses((found.host, found.port))

    def in_metadata(response: Any) -> None:
        for broker in response.brokers:
            readdress(broker)

    def in_coordinators(response: Any) -> None:
        for each in response.coordinators or [response]:
            readdress(each)

    def change(answer: Answer) -> None:
        edit = {"Metadata": in_metadata, "DescribeCluster": in_metadata, "FindCoordinator": in_coordinators}
        if answer.api in edit:
            answer.edit(edit[answer.api])

    return change


def _each(api: str, act: Change, times: int | None) -> Change:
    left = float("inf") if times is None else times

    def change(answer: Answer) -> None:
        nonlocal left
        if answer.api == api and left > 0:
            left -= 1
            act(answer)

    return change
