"""One field of a response changed at a time: what a broker may say that is not so, or leave out."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from kit.fakes.handlers import HANDLERS

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from kit.fakes.tcp_cluster import TcpCluster


def structures(response: Any) -> Iterator[Any]:
    """Yield a response and all structures in it."""
    yield response
    for field in type(response)._struct.fields.values():
        if field.is_struct_array():
            for each in getattr(response, field.name, None) or ():
                yield from structures(each)


def lies_about(value: Any) -> list[Any]:
    """Return other values for a field."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [each for each in (-1, 0, 1, value + 1, value ^ 4, 1 << 14) if each != value]
    if isinstance(value, str):
        return ["", "secret", value + "x", "a\nb"]
    if isinstance(value, uuid.UUID):
        return [uuid.UUID(int=0), uuid.UUID(int=value.int ^ 1)]
    if isinstance(value, list):
        return [[], value[1:], value[::-1], [*value, *value], [*value[:1], *value[:-1]]]
    if isinstance(value, (bytes, memoryview)):
        data = bytes(value)
        return [b"", data[: len(data) // 2], data + data, data[len(data) // 4 :]]
    return []


def lie(response: Any, number: int, truth: Container[tuple[str, str]] = ()) -> str | None:
    """Change one field of a response, the lie with this number; return what was done, None behind the last lie.

    Fields in `truth`, by structure and name, do not lie.
    """
    for structure in structures(response):
        for field in type(structure)._struct.fields.values():
            value = getattr(structure, field.name, None)
            if (type(structure).__name__, field.name) in truth:
                continue
            for other in lies_about(value):
                if number == 0:
                    setattr(structure, field.name, other)
                    return f"{type(structure).__name__}.{field.name}: {value!r:.60} -> {other!r:.60}"
                number -= 1
    return None


def script_lie(
    cluster: TcpCluster, request_class: Any, number: int, truth: Container[tuple[str, str]]
) -> list[str | None]:
    """Let the first response to a kind of request hold the lie with this number, and all others be true.

    Returns:
        A list for the result of `lie`; empty until such a request has come.
    """
    done: list[str | None] = []

    def respond(request: Any) -> Any:
        response = HANDLERS[request_class.name](cluster, request)
        if not done:
            done.append(lie(response, number, truth))
        return response

    cluster.script(request_class, respond)
    return done
