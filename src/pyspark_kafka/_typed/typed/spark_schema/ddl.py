"""Columns as in SQL, `id BIGINT, tags ARRAY<STRING>`, as an Arrow type: Spark's grammar, without a JVM."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from pyspark_kafka._typed.typed.spark_schema.types import (
    MAX_COLUMNS,
    MAX_DEPTH,
    MAX_TEXT_BYTES,
    SIMPLE_TYPES,
    UNREADABLE,
    columns_error,
    decimal_type,
    list_type,
    map_type,
    struct_type,
    unreadable,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

_TOKEN = re.compile(
    r"""
      (?P<space>   \s+ | --[^\n]* | /\*.*?\*/ )
    | (?P<name>    [A-Za-z0-9_]+ )
    | (?P<quoted>  `(?:[^`]|``)*` )
    | (?P<text>    '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" )
    | (?P<mark>    [<>(),:] )
    """,
    re.VERBOSE | re.DOTALL,
)
# What Spark reads as a number, not as a name: 1L, 2.5D, 1e3.
_NUMBER = re.compile(r"[0-9]+(?:[LSYDF]|BD|E[0-9]+[DF]?)?", re.IGNORECASE)
_DIGITS = re.compile(r"[0-9]{1,9}")
_DECIMALS = ("decimal", "dec", "numeric")


def parse_ddl(text: str) -> pa.StructType:
    """Return the columns of a text as a struct.

    The text has what Spark's `StructType.fromDDL` reads: names with types, in backquotes if they have other characters
    than letters, digits and `_`; `:` between name and type, or not; `NOT NULL` and `COMMENT '…'`, which change nothing:
    all columns are nullable. It may be one `STRUCT<…>` around the columns.

    Runs on: driver; pure.

    Raises:
        SchemaError: it is something else, has a type that no format is read as, or is too large.

    Source: Spark `SqlBaseParser.g4`, rules colTypeList, complexColTypeList and dataType.

    Example:
        >>> parse_ddl("id BIGINT NOT NULL, tags ARRAY<STRING>")
        StructType(struct<id: int64, tags: list<element: string>>)
    """
    try:
        return _DdlParser(text).parse()
    except ValueError as error:
        raise columns_error("list of columns", str(error)) from error


class _DdlToken(NamedTuple):
    kind: str
    text: str
    position: int

    def __str__(self) -> str:
        return f"'{self.text[:40]}' at character {self.position + 1}" if self.text else "the end of the text"


def _tokens(text: str) -> list[_DdlToken]:
    if len(text) > MAX_TEXT_BYTES:
        raise ValueError(f"it has {len(text)} characters, more than {MAX_TEXT_BYTES}")
    found = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"nothing is known that begins with '{text[at]}' at character {at + 1}")
        if match.lastgroup != "space":
            found.append(_DdlToken(str(match.lastgroup), match[0], at))
        at = match.end()
    return found


class _DdlParser:
    """Reads one text; every method raises ValueError with the end of a sentence."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._length = len(text)
        self._at = 0
        self._columns = 0

    def parse(self) -> pa.StructType:
        first = self._peek()
        after = self._tokens[1] if len(self._tokens) > 1 else self._peek(beyond=True)
        one_struct = first.text.lower() == "struct" and after.text == "<"
        found = self._type(0) if one_struct else self._fields(0, end="")
        if self._peek().text:
            raise ValueError(f"a comma or the end is expected where {self._peek()} is")
        return found

    def _peek(self, *, beyond: bool = False) -> _DdlToken:
        if beyond or self._at >= len(self._tokens):
            return _DdlToken("end", "", self._length)
        return self._tokens[self._at]

    def _next(self) -> _DdlToken:
        token = self._peek()
        self._at += 1
        return token

    def _skip(self, word: str) -> bool:
        """Pass over a word or a mark, and return whether it was there."""
        if self._peek().kind in ("name", "mark") and self._peek().text.lower() == word:
            self._at += 1
            return True
        return False

    def _expect(self, word: str) -> None:
        token = self._peek()
        if not self._skip(word):
            raise ValueError(f"'{word.upper()}' is expected where {token} is")

    def _fields(self, depth: int, end: str) -> pa.StructType:
        """Read columns up to a mark, which stays."""
        named = []
        if not (end and self._peek().text == end):
            named.append(self._field(depth))
            while self._skip(","):
                named.append(self._field(depth))
        return struct_type(named)

    def _field(self, depth: int) -> tuple[str, pa.DataType]:
        self._columns += 1
        if self._columns > MAX_COLUMNS:
            raise ValueError(f"it has more than {MAX_COLUMNS} columns")
        name = self._name()
        self._skip(":")
        kind = self._type(depth)
        if self._skip("not"):
            self._expect("null")
        else:
            self._skip("null")
        if self._skip("comment"):
            token = self._next()
            if token.kind != "text":
                raise ValueError(f"the text of a COMMENT in quotation marks is expected where {token} is")
        return name, kind

    def _name(self) -> str:
        token = self._next()
        if token.kind == "quoted" and len(token.text) > 2:
            return token.text[1:-1].replace("``", "`")
        if token.kind != "name" or _NUMBER.fullmatch(token.text):
            raise ValueError(f"the name of a column is expected where {token} is; other names stand in backquotes")
        return token.text

    def _type(self, depth: int) -> pa.DataType:
        if depth > MAX_DEPTH:
            raise ValueError(f"it nests more than {MAX_DEPTH} types")
        token = self._next()
        name = token.text.lower()
        if token.kind == "name":
            nested: dict[str, Callable[[int], pa.DataType]] = {
                "array": self._array,
                "map": self._map,
                "struct": self._struct,
            }
            if name in nested:
                return nested[name](depth + 1)
            if name in _DECIMALS:
                return self._decimal()
            if name in UNREADABLE:
                raise ValueError(f"{unreadable(name)}, for {token}")
            if name in SIMPLE_TYPES:
                if name == "string" and self._skip("collate"):
                    self._name()
                return SIMPLE_TYPES[name]
        raise ValueError(f"the name of a type is expected where {token} is")

    def _array(self, depth: int) -> pa.DataType:
        self._expect("<")
        items = self._type(depth)
        self._expect(">")
        return list_type(items)

    def _map(self, depth: int) -> pa.DataType:
        self._expect("<")
        keys = self._type(depth)
        self._expect(",")
        values = self._type(depth)
        self._expect(">")
        return map_type(keys, values)

    def _struct(self, depth: int) -> pa.DataType:
        self._expect("<")
        found = self._fields(depth, end=">")
        self._expect(">")
        return found

    def _decimal(self) -> pa.DataType:
        if not self._skip("("):
            return decimal_type(10, 0)
        precision = self._number()
        scale = self._number() if self._skip(",") else 0
        self._expect(")")
        return decimal_type(precision, scale)

    def _number(self) -> int:
        token = self._next()
        if _DIGITS.fullmatch(token.text) is None:
            raise ValueError(f"a whole number is expected where {token} is")
        return int(token.text)
