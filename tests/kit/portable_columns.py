"""Random columns that each format can hold: the type, and schemas of Avro and Protobuf for it.

Null are fields of structs only: Protobuf knows neither null items nor a list that is not there.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pyarrow as pa
from google.protobuf import descriptor_pb2
from hypothesis import strategies as st

from pyspark_kafka._typed.codecs.column_format import ColumnFormat
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema

Field = descriptor_pb2.FieldDescriptorProto
_AVRO = {
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.timestamp("us", "UTC"): {"type": "long", "logicalType": "timestamp-micros"},
}
_PROTOBUF = {
    pa.int32(): Field.TYPE_INT32,
    pa.int64(): Field.TYPE_SINT64,
    pa.float64(): Field.TYPE_DOUBLE,
    pa.bool_(): Field.TYPE_BOOL,
    pa.string(): Field.TYPE_STRING,
    pa.binary(): Field.TYPE_BYTES,
    pa.timestamp("us", "UTC"): Field.TYPE_MESSAGE,
}
_VALUES = {
    pa.int32(): st.integers(-(1 << 31), (1 << 31) - 1),
    pa.int64(): st.integers(-(1 << 63), (1 << 63) - 1),
    pa.float64(): st.floats(allow_nan=False, allow_infinity=False).map(lambda number: number + 0.0),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    pa.binary(): st.binary(max_size=5),
    # Of four digits of a year.
    pa.timestamp("us", "UTC"): st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999),
}
# In a list or a map JSON has no bytes.
_ITEMS = [each for each in _VALUES if each != pa.binary()]


@st.composite
def types(draw: st.DrawFn, depth: int = 2) -> pa.DataType:
    """A struct, nested up to a depth."""
    count = draw(st.integers(1, 4))
    fields = []
    for number in range(count):
        shapes = ["plain", "plain", "list", "map", *(["struct", "structs"] if depth else [])]
        shape = draw(st.sampled_from(shapes))
        kind = {
            "plain": lambda: draw(st.sampled_from(list(_VALUES))),
            "list": lambda: pa.list_(pa.field("element", draw(st.sampled_from(_ITEMS)))),
            "map": lambda: pa.map_(pa.string(), pa.field("value", draw(st.sampled_from(_ITEMS)))),
            "struct": lambda: draw(types(depth=depth - 1)),
            "structs": lambda: pa.list_(pa.field("element", _without_binary(draw(types(depth=depth - 1))))),
        }[shape]()
        fields.append(pa.field(f"f{number}", kind))
    return pa.struct(fields)


def _without_binary(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _without_binary(each.type)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _without_binary(kind.value_type)))
    return pa.string() if kind == pa.binary() else kind


def values_of(kind: pa.DataType, *, nullable: bool = True) -> st.SearchStrategy[Any]:
    """Values of a type, as `pa.array` takes them."""
    if pa.types.is_struct(kind):
        found: st.SearchStrategy[Any] = st.fixed_dictionaries({each.name: values_of(each.type) for each in kind})
    elif pa.types.is_list(kind):
        return st.lists(values_of(kind.value_type, nullable=False), max_size=3)
    elif pa.types.is_map(kind):
        keys = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)
        return st.dictionaries(keys, values_of(kind.item_type, nullable=False), max_size=3).map(
            lambda given: list(given.items())
        )
    else:
        found = _VALUES[kind]
    return st.none() | found if nullable else found


def columns_of(kind: pa.DataType) -> dict[str, ColumnFormat]:
    """Return the columns of a type: one for each format."""
    avro = RegisteredSchema("AVRO", json.dumps(_avro_record(kind, [0])))
    protobuf = RegisteredSchema("PROTOBUF", base64.b64encode(_file_set(kind)).decode())
    return {
        "json": ColumnFormat("json", "none", kind),
        "avro": ColumnFormat("avro", "none", kind, avro),
        "protobuf": ColumnFormat("protobuf", "none", kind, protobuf, "portable.Root"),
    }


def _avro_record(kind: pa.DataType, used: list[int]) -> dict[str, Any]:
    used[0] += 1
    name = f"R{used[0]}"
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": each.name, "type": _avro_type(each.type, used)} for each in kind],
    }


def _avro_type(kind: pa.DataType, used: list[int], *, nullable: bool = True) -> Any:
    if pa.types.is_list(kind):
        return {"type": "array", "items": _avro_type(kind.value_type, used, nullable=False)}
    if pa.types.is_map(kind):
        return {"type": "map", "values": _avro_type(kind.item_type, used, nullable=False)}
    found = _avro_record(kind, used) if pa.types.is_struct(kind) else _AVRO[kind]
    return ["null", found] if nullable else found


def _file_set(kind: pa.DataType) -> bytes:
    file = descriptor_pb2.FileDescriptorProto(name="portable.proto", package="portable", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    _fill(file.message_type.add(name="Root"), kind, ".portable.Root")
    return bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())


def _fill(message: Any, kind: pa.DataType, path: str) -> None:
    for number, each in enumerate(kind, 1):
        inner = each.type
        if pa.types.is_map(inner):
            entry = message.nested_type.add(name=f"F{number - 1}Entry")
            entry.options.map_entry = True
            entry.field.add(name="key", number=1, type=Field.TYPE_STRING, label=Field.LABEL_OPTIONAL)
            _add(entry, path, "value", 2, inner.item_type, Field.LABEL_OPTIONAL)
            message.field.add(
                name=each.name,
                number=number,
                type=Field.TYPE_MESSAGE,
                label=Field.LABEL_REPEATED,
                type_name=f"{path}.F{number - 1}Entry",
            )
        elif pa.types.is_list(inner):
            _add(message, path, each.name, number, inner.value_type, Field.LABEL_REPEATED)
        else:
            _add(message, path, each.name, number, inner, Field.LABEL_OPTIONAL)


def _add(message: Any, path: str, name: str, number: int, kind: pa.DataType, label: int) -> None:
    field = message.field.add(name=name, number=number, label=label)
    if pa.types.is_struct(kind):
        _fill(message.nested_type.add(name=f"M{number}"), kind, f"{path}.M{number}")
        field.type, field.type_name = Field.TYPE_MESSAGE, f"{path}.M{number}"
        return
    field.type = _PROTOBUF[kind]
    if pa.types.is_timestamp(kind):
        field.type_name = ".google.protobuf.Timestamp"
    elif label == Field.LABEL_OPTIONAL and not message.options.map_entry:
        field.proto3_optional = True
        field.oneof_index = len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{name}")
