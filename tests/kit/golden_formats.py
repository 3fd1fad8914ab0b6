"""Values that other programs wrote: the files of tests/golden/formats, which tools/make_format_fixtures.py made."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from pyspark_kafka._typed.codecs.avro.by_schema import read_schema
from pyspark_kafka._typed.codecs.avro.decoding import AvroDecoder
from pyspark_kafka._typed.codecs.column_format import ColumnFormat
from pyspark_kafka._typed.codecs.protobuf.by_schema import read_message
from pyspark_kafka._typed.codecs.protobuf.decoding import ProtobufDecoder
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema, SchemaId, SchemaKind, UnknownSchemaError

FOLDER = Path(__file__).parents[1] / "golden" / "formats"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
_HEADER_TYPE = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_KINDS: dict[str, SchemaKind] = {"avro": "AVRO", "json": "JSON", "protobuf": "PROTOBUF"}
# The columns of the rows in JSON.
_INNER = pa.struct([("x", pa.float64()), ("note", pa.string())])
JSON_TYPE = pa.struct(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("ratio", pa.float64()),
        ("ok", pa.bool_()),
        ("price", pa.decimal128(10, 2)),
        ("inner", _INNER),
        ("others", pa.list_(pa.field("element", _INNER))),
        ("counts", pa.map_(pa.string(), pa.int64())),
        ("maybe", pa.int32()),
    ]
)


class KnownSchemas:
    """A registry of the schemas that it is given, by id."""

    def __init__(self, schemas: Iterable[RegisteredSchema]) -> None:
        self._schemas = {each.schema_id: each for each in schemas}

    def schema_by_id(self, schema_id: SchemaId) -> RegisteredSchema:
        """Return a schema."""
        if schema_id not in self._schemas:
            raise UnknownSchemaError("is not in the registry")
        return self._schemas[schema_id]

    def knows(self, schema_id: SchemaId) -> bool:
        """Return True: all is in memory."""
        del schema_id
        return True

    def schema_by_subject(self, subject: str, version: int | None = None) -> RegisteredSchema:
        """Not there."""
        raise NotImplementedError

    def find_id(self, subject: str, schema: RegisteredSchema) -> SchemaId | None:
        """Not there."""
        raise NotImplementedError

    def incompatibilities(self, subject: str, schema: RegisteredSchema) -> list[str]:
        """Not there."""
        raise NotImplementedError

    def register(self, subject: str, schema: RegisteredSchema) -> SchemaId:
        """Not there."""
        raise NotImplementedError


@dataclass(frozen=True)
class GoldenFile:
    """A file: what a program wrote, and what it was told to write.

    Attributes:
        name: of the file.
        content: what it has, see `golden` in tools/make_format_fixtures.py.
    """

    name: str
    content: dict[str, Any]

    @classmethod
    def read(cls, name: str) -> GoldenFile:
        """Read a file by its name, without .json."""
        return cls(name, json.loads((FOLDER / f"{name}.json").read_text()))

    @property
    def format(self) -> Literal["json", "avro", "protobuf"]:
        """Which format the values have."""
        found: Literal["json", "avro", "protobuf"] = self.content["format"]
        return found

    @property
    def framing(self) -> str:
        """What stands before each value."""
        found: str = self.content["framing"]
        return found

    @property
    def schemas(self) -> list[RegisteredSchema]:
        """The schemas by age; readers take the last."""
        kind = _KINDS[self.format]
        return [RegisteredSchema(kind, each["schema"], (), each["id"]) for each in self.content["schemas"]]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """What readers find, as `plain` returns it."""
        found: list[dict[str, Any]] = self.content["rows"]
        return found

    def values(self) -> pa.Array:
        """Return the values."""
        return pa.array([base64.b64decode(each["value"]) for each in self.content["values"]], pa.binary())

    def headers(self) -> pa.Array:
        """Return the headers, as the source has them."""
        found = [
            [{"key": key, "value": base64.b64decode(value)} for key, value in each["headers"]]
            for each in self.content["values"]
        ]
        return pa.array(found, _HEADER_TYPE)

    def column(self) -> ColumnFormat:
        """Return the column that the values become."""
        if self.format == "json":
            return ColumnFormat("json", self.framing, JSON_TYPE)
        schema = self.schemas[-1]
        message = self.content["message"]
        kind = (
            AvroDecoder(read_schema(schema)).arrow_type
            if self.format == "avro"
            else ProtobufDecoder(read_message(schema, message)).arrow_type
        )
        return ColumnFormat(self.format, self.framing, kind, schema, message)


def plain(value: Any, kind: pa.DataType) -> Any:
    """Return a value of a column in the form of the files: bytes in Base64, times in ISO 8601, decimals as text."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        found = {each.name: plain(value[each.name], each.type) for each in kind}
        members = [each for name, each in found.items() if name.startswith("member")]
        if found and len(members) == len(found):
            # A union: the one that is there.
            return next((each for each in members if each is not None), None)
        return found
    if pa.types.is_map(kind):
        return {key: plain(each, kind.item_type) for key, each in value}
    if pa.types.is_list(kind):
        return [plain(each, kind.value_type) for each in value]
    if pa.types.is_binary(kind):
        return base64.b64encode(value).decode()
    if pa.types.is_temporal(kind):
        return value.isoformat()
    if pa.types.is_decimal(kind):
        # Numbers without a sign are decimals in columns.
        return int(value) if kind.scale == 0 else str(value)
    return value
