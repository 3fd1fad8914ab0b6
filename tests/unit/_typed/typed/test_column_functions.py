"""Functions for `mapInArrow`, on batches without Spark."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from kit.pickled import copied
from pyspark_kafka._typed.typed.column_functions import ColumnDecoding
from pyspark_kafka._typed.typed.read_formats import CORRUPT_TYPE
from pyspark_kafka.errors import OptionError, RecordError, SchemaError
from pyspark_kafka.formats import decode_column, encode_column

AVRO = json.dumps({"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]})
SCHEMA = "id BIGINT"
VALUES = [b'{"id":1}', b"{", None]


def spark(ddl: str) -> StructType:
    fields = [part.split() for part in ddl.split(", ")]
    return StructType.fromJson(
        {"fields": [{"name": n, "type": t, "nullable": True, "metadata": {"kept": 1}} for n, t in fields]}
    )


def batch(values: list[Any], **columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": pa.array(values, pa.binary()), **columns})


def test_a_column_is_replaced_and_the_others_stay() -> None:
    decoding = copied(decode_column("value", "json", schema=SCHEMA))
    first, second = decoding([batch(VALUES[:1], n=[7]), batch([], n=pa.array([], pa.int64()))])
    assert first.to_pylist() == [{"value": {"id": 1}, "n": 7}]
    assert (second.num_rows, second.schema) == (0, first.schema)
    schema = decoding.output_schema(spark("value binary, n long"))
    assert schema.simpleString() == "struct<value:struct<id:bigint>,n:bigint>"
    assert schema["n"].metadata == {"kept": 1}


def test_a_column_is_added_under_its_own_name() -> None:
    decoding = decode_column("value", "json", schema=SCHEMA, into="order")
    (found,) = decoding([batch(VALUES[:1])])
    assert found.to_pylist() == [{"value": b'{"id":1}', "order": {"id": 1}}]
    assert (
        decoding.output_schema(spark("value string")).simpleString() == "struct<value:string,order:struct<id:bigint>>"
    )


def test_a_bad_value_fails_and_names_its_record() -> None:
    decoding = decode_column("value", "json", schema=SCHEMA)
    with pytest.raises(RecordError, match=r"Row 1 of an Arrow batch cannot be read as json: DECODE_FAILED"):
        list(decoding([batch(VALUES)]))
    places = {"topic": ["t"] * 3, "partition": [4] * 3, "offset": [10, 11, 12]}
    with pytest.raises(RecordError, match=r"The record at offset 11 of t-4 cannot be read as json"):
        list(decoding([batch(VALUES, **places)]))


def test_a_bad_value_is_null_with_all_about_it_in_the_corrupt_column() -> None:
    decoding = decode_column("value", "json", schema=SCHEMA, on_bad="null", corrupt_column="bad")
    (found,) = decoding([batch(VALUES, key=pa.array([b"a", b"b", b"c"], pa.binary()))])
    assert found.column("value").to_pylist() == [{"id": 1}, None, None]
    first, corrupt, last = found.column("bad").to_pylist()
    assert (first, last) == (None, None)
    assert corrupt.pop("message")
    assert corrupt == {
        "column": "value", "reason": "DECODE_FAILED", "schemaId": None, "rawKey": b"b", "rawValue": b"{",
    }  # fmt: skip
    (clean,) = decoding([batch(VALUES[:1], key=pa.array([b"a"], pa.binary()))])
    assert clean.schema == found.schema
    assert decoding.output_schema(spark("value binary, key binary")).simpleString() == (
        "struct<value:struct<id:bigint>,key:binary,bad:struct<column:string,reason:string,message:string,"
        "schemaId:string,rawKey:binary,rawValue:binary>>"
    )


def test_bad_keys_are_told_as_keys_with_the_id_of_their_schema() -> None:
    decoding = decode_column(
        "key", "json", schema=SCHEMA, framing="confluent", is_key=True, on_bad="null", corrupt_column="bad"
    )
    keys = pa.array([b"\x00\x00\x00\x00\x07{", b"\x01"], pa.binary())
    (found,) = decoding([batch([b"v", None], key=keys)])
    first, second = found.column("bad").to_pylist()
    assert (first["column"], first["schemaId"], first["rawKey"], first["rawValue"]) == (
        "key",
        "7",
        keys[0].as_py(),
        b"v",
    )
    assert (second["reason"], second["schemaId"], second["rawKey"]) == ("INCOMPLETE_HEADER", None, b"\x01")


def test_an_encoded_column_comes_back() -> None:
    column = pa.array([{"id": 1}, None], pa.struct([("id", pa.int64())]))
    rows = pa.RecordBatch.from_pydict({"value": column})
    encoding = copied(encode_column("value", "avro", schema=AVRO, schema_id=7))
    (encoded,) = encoding([rows])
    assert encoded.column("value").to_pylist() == [b"\x00\x00\x00\x00\x07\x02", None]
    assert encoding.output_schema(spark("value binary")).simpleString() == "struct<value:binary>"


def test_a_row_that_cannot_be_encoded_is_named_with_its_record() -> None:
    column = pa.array([{"id": 1}, {"id": None}], pa.struct([("id", pa.int64())]))
    rows = pa.RecordBatch.from_pydict({"value": column, "topic": ["t"] * 2, "partition": [0, 0], "offset": [5, 6]})
    with pytest.raises(RecordError, match=r"\[VALUE_NOT_ENCODABLE\] The record at offset 6 of t-0: Row 1"):
        list(encode_column("value", "avro", schema=AVRO)([rows]))


def test_columns_that_do_not_fit_are_refused_when_the_schema_is_made() -> None:
    decoding = decode_column("value", "json", schema=SCHEMA)
    with pytest.raises(SchemaError, match=r"Column 'value' is missing\. The columns of the DataFrame: id"):
        decoding.output_schema(spark("id long"))
    with pytest.raises(SchemaError, match="Column 'value' is long, not binary or string"):
        decoding.output_schema(spark("value long"))


@pytest.mark.parametrize(
    "arguments", [{"corrupt_column": "bad"}, {"on_bad": "null", "corrupt_column": "value"}, {"on_bad": "skip"}]
)
def test_arguments_that_contradict_each_other_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=r"corrupt_column|on_bad"):
        decode_column("value", "json", schema=SCHEMA, **arguments)


def corrupt_decoding(name: str, *, into: str | None = None, corrupt_column: str = "bad") -> ColumnDecoding:
    return copied(
        decode_column(
            name, "json", schema=SCHEMA, into=into, is_key=name == "key", on_bad="null", corrupt_column=corrupt_column
        )
    )


@pytest.mark.parametrize("first", ["key", "value"])
def test_two_decodings_fill_one_corrupt_column(first: str) -> None:
    second = "value" if first == "key" else "key"
    good, bad = b'{"id":1}', b"{"
    keys, values = [bad, good, bad, good], [good, bad, bad, good]
    rows = batch(values, key=pa.array(keys, pa.binary()))
    steps = [corrupt_decoding(first, into="decoded"), corrupt_decoding(second)]
    (found,) = steps[1](steps[0]([rows]))
    corrupt = found.column("bad").to_pylist()
    assert [each and (each["column"], each["rawKey"], each["rawValue"]) for each in corrupt] == [
        ("key", bad, good),
        ("value", good, bad),
        (first, bad, bad),
        None,
    ]
    assert found.column("decoded").to_pylist() == [None if row[first] == bad else {"id": 1} for row in rows.to_pylist()]
    schema = steps[1].output_schema(steps[0].output_schema(spark("value binary, key binary")))
    assert schema.names == ["value", "key", "decoded", "bad"] == found.schema.names


def test_the_corrupt_column_of_large_types_is_filled_too() -> None:
    (first,) = corrupt_decoding("value", into="decoded")([batch(VALUES)])
    large = pa.struct(
        [
            pa.field(each.name, pa.large_binary() if pa.types.is_binary(each.type) else pa.large_string())
            for each in CORRUPT_TYPE
        ]
    )
    values = [each and each | {"rawKey": b""} for each in first.column("bad").to_pylist()]
    rows = batch([b"{"] * 3, bad=pa.array(values, large))
    (second,) = corrupt_decoding("value")([rows])
    assert second.schema.field("bad").type == CORRUPT_TYPE
    assert [each["rawKey"] for each in second.column("bad").to_pylist()] == [None, b"", None]


@pytest.mark.parametrize("taken", ["string", "binary"])
def test_a_column_of_another_type_is_no_corrupt_column(taken: str) -> None:
    decoding = corrupt_decoding("value")
    with pytest.raises(OptionError, match=r"\[OPTION_CONFLICT\] Argument 'corrupt_column' is 'bad', which is a column"):
        decoding.output_schema(spark(f"value binary, bad {taken}"))
    with pytest.raises(OptionError, match=r"\[OPTION_CONFLICT\]"):
        next(decoding([batch(VALUES[:1], bad=pa.array(["x"]).cast(taken))]))


def test_a_struct_of_other_fields_is_no_corrupt_column() -> None:
    with pytest.raises(OptionError, match="which is a column of another type"):
        next(corrupt_decoding("value")([batch(VALUES[:1], bad=pa.array([{"reason": "x"}]))]))


@pytest.mark.parametrize("text", [pa.string(), pa.large_string(), pa.large_binary(), pa.null()])
def test_the_other_side_is_kept_as_bytes_whatever_holds_it(text: pa.DataType) -> None:
    keys = pa.array([None, None if text == pa.null() else "ü", None], text)
    (found,) = corrupt_decoding("value")([batch(VALUES, key=keys)])
    assert found.column("bad")[1].as_py()["rawKey"] == (None if text == pa.null() else "ü".encode())


def test_another_side_without_bytes_is_refused() -> None:
    key, value = corrupt_decoding("key"), corrupt_decoding("value")
    message = r"Column 'key' is (long|struct), not binary or string: .* decode it into another column \(into=\.\.\.\)"
    with pytest.raises(SchemaError, match=message):
        value.output_schema(spark("value binary, key long"))
    with pytest.raises(SchemaError, match=message):
        value.output_schema(key.output_schema(spark("value binary, key binary")))
    with pytest.raises(SchemaError, match=message):
        next(value(key([batch(VALUES[:1], key=pa.array([b"{"], pa.binary()))])))
    without = decode_column("value", "json", schema=SCHEMA, on_bad="null")
    assert without.output_schema(spark("value binary, key long")).names == ["value", "key"]
