"""The values of a batch that arrow-json refuses.

arrow-json refuses a batch for one value, and names the field, not the row. The row is found by decoding ever smaller
parts of the batch, with a type that has only this field: that takes a fraction of the time of whole values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

# A part that is refused is divided by this: more divisions have more calls, fewer decode good values more often.
_DIVISION = 8
# Fields with bad values in one batch that are searched one after the other; then all at once, as each takes its time.
_MAX_SEARCHES = 4
_FIELD = "whilst decoding field '"
# Only where the text begins: what follows may quote a value.
_ERROR = re.compile(rf"(?:C Data interface error: )?Json error: (?={_FIELD})")


class RefusalSearch:
    """Finds the refused values of one batch.

    Args:
        schema: one field, with the type of the values.
        refusal: decodes all of some values by such a schema; returns the text of the error, None if there is none.
    """

    def __init__(self, schema: pa.Schema, refusal: Callable[[Sequence[bytes | None], pa.Schema], str | None]) -> None:
        self._schema, self._type = schema, schema[0].type
        self._refusal, self._searches = refusal, 0

    def find(self, texts: Sequence[bytes | None], error: str) -> dict[int, str | None]:
        """Return rows of refused values, at least one, with the refused field; None if it is unknown.

        Args:
            texts: the values, which are refused together; others may be refused when these are gone.
            error: arrow-json's text.

        Raises:
            ValueError: each value is good alone.
        """
        self._searches += 1
        path = self._path(texts, error) if self._searches <= _MAX_SEARCHES else ()
        found: dict[int, str | None] = {}
        if path:
            # An error names a part of the field, if that is where the value is bad.
            refused = self._refused(texts, 0, self._only(path))
            found = {row: _shown(_named_path(its_error, self._type) or path) for row, its_error in refused}
        if not found:
            alone = list(self._refused(texts, 0, self._schema))
            found = {row: _shown(self._path([texts[row]], its_error)) for row, its_error in alone}
        if not found:
            raise ValueError(error)
        return found

    def _refused(self, texts: Sequence[bytes | None], start: int, schema: pa.Schema) -> Iterator[tuple[int, str]]:
        error = self._refusal(texts, schema)
        if error is None:
            return
        if len(texts) == 1:
            yield start, error
            return
        size = -(-len(texts) // _DIVISION)
        for at in range(0, len(texts), size):
            yield from self._refused(texts[at : at + size], start + at, schema)

    def _only(self, path: tuple[str, ...]) -> pa.Schema:
        return pa.schema([pa.field(self._schema[0].name, _narrowed(self._type, path))])

    def _path(self, texts: Sequence[bytes | None], error: str) -> tuple[str, ...]:
        """Return the path of the refused field; empty if it is unknown."""
        named = _named_path(error, self._type)
        if named:
            return named
        # The error of a decimal names no field.
        decimals = _decimal_paths(self._type)
        return next((path for path in decimals if self._refusal(texts, self._only(path)) is not None), ())


def _shown(path: tuple[str, ...]) -> str | None:
    return ".".join(path) if path else None


def _named_path(error: str, kind: pa.DataType) -> tuple[str, ...]:
    """Return the path that an error names, as far as the type has it; the outermost field is the wrapper's."""
    begin = _ERROR.match(error)
    rest = error[begin.end() :].partition("': ")[2] if begin else ""
    path: list[str] = []
    while True:
        while pa.types.is_list(kind) or pa.types.is_map(kind):
            kind = kind.value_type if pa.types.is_list(kind) else kind.item_type
        names = [each.name for each in kind] if pa.types.is_struct(kind) else []
        name = next((each for each in names if rest.startswith(f"{_FIELD}{each}': ")), None)
        if name is None:
            return tuple(path)
        path.append(name)
        rest = rest[len(f"{_FIELD}{name}': ") :]
        kind = kind.field(name).type


def _decimal_paths(kind: pa.DataType) -> list[tuple[str, ...]]:
    if pa.types.is_decimal(kind):
        return [()]
    if pa.types.is_struct(kind):
        return [(each.name, *path) for each in kind for path in _decimal_paths(each.type)]
    if pa.types.is_list(kind):
        return _decimal_paths(kind.value_type)
    return _decimal_paths(kind.item_type) if pa.types.is_map(kind) else []


def _narrowed(kind: pa.DataType, path: tuple[str, ...]) -> pa.DataType:
    """Return a type with one of its fields only."""
    if not path:
        return kind
    if pa.types.is_list(kind):
        return pa.list_(_narrowed(kind.value_type, path))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _narrowed(kind.item_type, path))
    return pa.struct([pa.field(path[0], _narrowed(kind.field(path[0]).type, path[1:]))])
