"""Parts of documents whose text is changed before they are read, or after they are written. Pure.

arrow-json has no column for the text of a part, reads no decimal from Base64, and writes nulls everywhere or nowhere.
Documents with such parts are taken apart by msgspec, which leaves all other parts as they are.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple

import pyarrow as pa

JSON_TEXT = pa.string_view()
"""In the type of documents: a string that holds the text of a part."""
_MAX_DIGITS = 38
_BLANKS = re.compile(r"[ \t\n\r]*")
# No decimal: arrow-json refuses it.
_NO_NUMBER = b"{}"


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


# Numbers are only skipped: as whole ones they could have too many digits.
_SCAN = json.JSONDecoder(parse_int=float, parse_constant=_refuse).raw_decode


def connect_decimal(scale: int) -> pa.DataType:
    """Return, for the type of documents, a decimal that is a number, or its unscaled bytes as Base64."""
    return pa.decimal256(_MAX_DIGITS, scale)


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """A changed part, or one with such parts.

    Attributes:
        change: returns the new text of it; None if parts of it are changed.
        members: parts of an object, by name.
        items: the part that each item of a list is.
        entries: the part for the values of a map.
        nulls: members of an object that are null where they are missing.
    """

    change: Callable[[bytes], bytes] | None = None
    members: Mapping[str, DocumentPart] = field(default_factory=dict)
    items: DocumentPart | None = None
    entries: DocumentPart | None = None
    nulls: tuple[str, ...] = ()

    def rewrite(self, text: bytes) -> bytes:
        """Return a document with its parts changed; one of another form than the parts is left as it is.

        Args:
            text: one document of JSON.

        Raises:
            ValueError: a part of it is not UTF-8.
            RecursionError: it nests too deeply.
        """
        if self.change is not None:
            return self.change(text)
        if self.entries is not None:
            return _rewritten_entries(text, self.entries)
        codec = _raw_parts()
        try:
            if self.items is not None:
                items = [codec.raw(self.items.rewrite(bytes(each))) for each in codec.decode_list(text)]
                return codec.encode(items)
            members = codec.decode_object(text)
        except codec.other_form:
            return text
        for name, part in self.members.items():
            if name in members:
                members[name] = codec.raw(part.rewrite(bytes(members[name])))
        for name in self.nulls:
            members.setdefault(name, codec.null)
        return codec.encode(members)


class _RawParts(NamedTuple):
    """A parser that splits lists and objects, and leaves their parts as they are."""

    decode_list: Callable[[bytes], list[Any]]
    decode_object: Callable[[bytes], dict[str, Any]]
    encode: Callable[[Any], bytes]
    raw: Callable[[bytes], Any]
    null: Any
    other_form: type[Exception]


@cache
def _raw_parts() -> _RawParts:
    import msgspec  # noqa: PLC0415 - optional

    decode_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
    decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
    return _RawParts(
        decode_list,
        decode_object,
        msgspec.json.Encoder().encode,
        msgspec.Raw,
        msgspec.Raw(b"null"),
        msgspec.ValidationError,
    )


def _rewritten_entries(text: bytes, part: DocumentPart) -> bytes:
    """Return an object with each of its values changed: msgspec would take one of several values with one name."""
    decoded = text.decode()
    if decoded[:1] != "{":
        return text
    out = []
    at = _skip(decoded, 1)
    while decoded[at : at + 1] == '"':
        begin = at
        at = _skip(decoded, _SCAN(decoded, at)[1])
        value = _skip(decoded, at + 1)
        at = _SCAN(decoded, value)[1]
        out.append(decoded[begin:value].encode() + part.rewrite(decoded[value:at].encode()))
        # The comma, or the end.
        at = _skip(decoded, _skip(decoded, at) + 1)
    return b"{" + b",".join(out) + b"}"


def _skip(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return at if found is None else found.end()


def merged(one: DocumentPart | None, other: DocumentPart | None) -> DocumentPart | None:
    """Return the parts of both, which have the same forms."""
    if one is None or other is None:
        return one or other
    names = {**one.members, **other.members}
    members = {name: merged(one.members.get(name), other.members.get(name)) for name in names}
    return DocumentPart(
        one.change or other.change,
        {name: part for name, part in members.items() if part is not None},
        merged(one.items, other.items),
        merged(one.entries, other.entries),
        (*one.nulls, *other.nulls),
    )


def has_parts(kind: pa.DataType) -> bool:
    """Return whether the type of documents has such parts."""
    if kind == JSON_TEXT or pa.types.is_decimal256(kind):
        return True
    return any(has_parts(kind.field(number).type) for number in range(kind.num_fields))


def part_type(documents: pa.DataType | None, kind: pa.DataType, name: str = "") -> pa.DataType | None:
    """Return the type of the documents' member or of their items; None if they have no such part."""
    if documents is None:
        return None
    if pa.types.is_struct(kind) and pa.types.is_struct(documents):
        number = documents.get_field_index(name)
        return None if number < 0 else documents.field(number).type
    if pa.types.is_list(kind) and pa.types.is_list(documents):
        return documents.value_type
    return documents.item_type if pa.types.is_map(kind) and pa.types.is_map(documents) else None


def parts_to_read(documents: pa.DataType, wanted: pa.DataType) -> DocumentPart | None:
    """Return the parts to change before documents of a type are read as a part of it; None without any."""
    return _parts(documents, wanted, _as_text)


def parts_to_write(documents: pa.DataType, column: pa.DataType) -> DocumentPart | None:
    """Return the parts to change after a column of JSON texts is written; None without any."""
    return _parts(documents, column, _from_text, is_write=True)


def is_json(text: str) -> bool:
    """Return whether a text is one value of JSON."""
    try:
        return _skip(text, _SCAN(text, _skip(text, 0))[1]) == len(text)
    except (ValueError, RecursionError):
        return False


def _parts(
    documents: pa.DataType, wanted: pa.DataType, of_text: Callable[[bytes], bytes], *, is_write: bool = False
) -> DocumentPart | None:
    def inner(found: pa.DataType, kind: pa.DataType) -> DocumentPart | None:
        return _parts(found, kind, of_text, is_write=is_write)

    if documents == JSON_TEXT:
        is_text = pa.types.is_string(wanted) or pa.types.is_large_string(wanted)
        return DocumentPart(of_text) if is_text else None
    if pa.types.is_decimal256(documents):
        # A number is written, which readers of Connect take, too.
        return None if is_write else DocumentPart(_as_decimal(documents.scale))
    if pa.types.is_struct(documents) and pa.types.is_struct(wanted):
        known = {each.name: each.type for each in documents}
        found = {each.name: inner(known[each.name], each.type) for each in wanted if each.name in known}
        members = {name: part for name, part in found.items() if part is not None}
        return DocumentPart(members=members) if members else None
    if pa.types.is_list(documents) and pa.types.is_list(wanted):
        items = inner(documents.value_type, wanted.value_type)
        return None if items is None else DocumentPart(items=items)
    if pa.types.is_map(documents) and pa.types.is_map(wanted):
        entries = inner(documents.item_type, wanted.item_type)
        return None if entries is None else DocumentPart(entries=entries)
    return None


def _as_text(raw: bytes) -> bytes:
    return raw if raw == b"null" else _raw_parts().encode(raw.decode())


def _string(raw: bytes) -> str:
    """Return the text of a JSON string."""
    found: str = _SCAN(raw.decode())[0]
    return found


def _from_text(raw: bytes) -> bytes:
    return _string(raw).encode() if raw[:1] == b'"' else raw


def _as_decimal(scale: int) -> Callable[[bytes], bytes]:
    def change(raw: bytes) -> bytes:
        if raw[:1] != b'"':
            return raw
        try:
            unscaled = base64.b64decode(_string(raw), validate=True)
        except ValueError:
            return _NO_NUMBER
        number = int.from_bytes(unscaled, "big", signed=True)
        if not unscaled or abs(number) >= 10**_MAX_DIGITS:
            return _NO_NUMBER
        return f"{Decimal(f'{number}e-{scale}'):f}".encode()

    return change
