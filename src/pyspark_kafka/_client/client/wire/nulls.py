"""Null arrays and texts where the schema of a response has none. Pure: no sockets, no clock.

kafka-python decodes them as None wherever they stand. Java refuses them, and so does this package, in one place: a
parser may iterate over what the schema promises. Responses with parsers of their own (Fetch, Produce) pass by here.
"""

from __future__ import annotations

from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

_TEXTS = ("string", "bytes", "records")


class _Plan(NamedTuple):
    """The checked fields of a structure in one version.

    Attributes:
        names: the fields that must not be null.
        read: returns their values.
        texts: fields that are arrays of texts, none of which may be null.
        structures: fields that are structures, or arrays of them, with their plans.
    """

    names: tuple[str, ...]
    read: Callable[[Any], Any] | None
    texts: tuple[str, ...]
    structures: tuple[tuple[str, bool, _Plan], ...]


def refuse_nulls(response: Any, version: int) -> None:
    """Raise if a field is null that must not be; costs a call for each structure of the response.

    Args:
        response: as kafka-python has decoded it; other objects are left alone.
        version: of the response.

    Raises:
        ValueError: a field is null; names it.

    Source: Kafka's message definitions, `nullableVersions`.
    """
    kind: Any = type(response)
    plan = _plan_of(kind, version)
    if plan is not None:
        _check(response, plan)


@lru_cache(maxsize=256)
def _plan_of(response_class: Hashable, version: int) -> _Plan | None:
    struct = getattr(response_class, "_struct", None)
    return None if struct is None else _plan_fields(struct.fields.values(), version)


def _plan_fields(fields: Iterable[Any], version: int) -> _Plan:
    # Tagged fields that are not sent have their defaults.
    there = [field for field in fields if field.for_version_q(version) and field.tag is None]
    names = tuple(
        field.name
        for field in there
        if not field.nullable_for_version_q(version)
        and (field.type_str in _TEXTS or field.is_array() or field.is_struct() or field.is_struct_array())
    )
    # `attrgetter` of one name returns no tuple.
    read = attrgetter(*names, names[0]) if names else None
    texts = tuple(field.name for field in there if field.type_str in ("[]string", "[]bytes"))
    structures = tuple(
        (field.name, field.is_struct_array(), _plan_fields(field.fields.values(), version))
        for field in there
        if field.fields and (field.is_struct() or field.is_struct_array())
    )
    return _Plan(names, read, texts, tuple(each for each in structures if any(each[2])))


def _check(found: Any, plan: _Plan) -> None:
    names, read, texts, structures = plan
    if read is not None and None in read(found):
        name = next(name for name in names if getattr(found, name) is None)
        raise ValueError(f"{name} is null")
    for name in texts:
        if None in (getattr(found, name) or ()):
            raise ValueError(f"an entry of {name} is null")
    for name, is_array, inner in structures:
        content = getattr(found, name)
        if content is None:
            continue
        if not is_array:
            _check(content, inner)
            continue
        for each in content:
            _check(each, inner)
