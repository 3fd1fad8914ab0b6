"""Batches of typed keys and values: columns, bad records in each mode, and what a decoder is asked for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from kit.record_batches import batch, record
from kit.texts import said
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._connector.source.executor.assembler import Assemblers
from pyspark_kafka._connector.source.executor.columns import BatchAssembler, source_schema
from pyspark_kafka._connector.source.executor.typed_columns import TypedBatches
from pyspark_kafka._typed.codecs.column_decoder import DecodedColumn
from pyspark_kafka._typed.codecs.column_format import ColumnFormat
from pyspark_kafka._typed.codecs.values import BadValue, Reason
from pyspark_kafka._typed.typed.read_formats import ReadFormats
from pyspark_kafka.errors import RecordError, RegistryError
from pyspark_kafka.records import decode

PLACE = TopicPartition("orders", 3)
VALUE = pa.struct([("id", pa.int64()), ("name", pa.string())])
JSON = ColumnFormat("json", "none", VALUE)
KEY = ColumnFormat("json", "none", pa.struct([("k", pa.int64())]))
FORMATS = ReadFormats(
    key=None,
    value=JSON,
    registry=None,
    mode="FAILFAST",
    corrupt_column="_corrupt_record",
    include_schema_id=False,
    max_corrupt_ratio=1.0,
)
BOTH = replace(FORMATS, key=KEY)

Pair = tuple["bytes | None", "bytes | None"]


def schema_of(formats: ReadFormats) -> pa.Schema:
    return source_schema(include_headers=False, typed=formats.read_fields())


def read(
    formats: ReadFormats, pairs: Sequence[Pair], names: Sequence[str] = (), *, start: int = 40, **decoders: Any
) -> pa.RecordBatch:
    """Return the batch of records from offset 40 on."""
    schema = schema_of(formats)
    if names:
        schema = pa.schema([schema.field(name) for name in names])
    return read_with(TypedBatches(schema, formats, decoders or None), pairs, start)


def read_with(batches: TypedBatches, pairs: Sequence[Pair], start: int = 40) -> pa.RecordBatch:
    assembler = batches.assembler(PLACE)
    data = batch([record(at, value, key=key) for at, (key, value) in enumerate(pairs)], base_offset=start)
    found = assembler.assemble(decode(data, start_offset=start, columns=assembler.decoded_columns))
    found.validate(full=True)
    assert found.schema.equals(batches.schema, check_metadata=True)
    return found


def values(*texts: bytes | None) -> list[Pair]:
    return [(b"k", text) for text in texts]


def document(number: int) -> bytes:
    return json.dumps({"id": number, "name": f"n{number}"}).encode()


def test_a_typed_value_stands_in_its_column_beside_the_others() -> None:
    found = read(FORMATS, values(document(1), b'{"name": "two", "other": 1}', None))
    assert found.schema.names == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert found.column("value").to_pylist() == [{"id": 1, "name": "n1"}, {"id": None, "name": "two"}, None]
    assert found.column("key").to_pylist() == [b"k"] * 3
    assert found.column("topic").to_pylist() == ["orders"] * 3
    assert found.column("partition").to_pylist() == [3] * 3
    assert found.column("offset").to_pylist() == [40, 41, 42]


def test_typed_keys_and_values_are_read_at_once() -> None:
    found = read(BOTH, [(b'{"k": 7}', document(1)), (None, None)], ["value", "key"])
    assert found.to_pylist() == [{"value": {"id": 1, "name": "n1"}, "key": {"k": 7}}, {"value": None, "key": None}]


@pytest.mark.parametrize("names", [["value"], ["partition", "value", "topic"], ["offset", "value"]])
def test_offsets_are_read_for_errors_and_returned_only_if_they_are_asked_for(names: list[str]) -> None:
    assert read(FORMATS, values(document(1)), names).schema.names == names
    with pytest.raises(RecordError, match="offset 41 of orders-3"):
        read(FORMATS, values(document(1), b"{"), names)


def test_failfast_names_the_first_bad_record() -> None:
    with pytest.raises(RecordError) as caught:
        read(FORMATS, values(document(1), document(2), b'{"id": "secret"', b"{"))
    text = str(caught.value)
    assert text.startswith(
        "[BAD_RECORD] The value of the record at offset 42 of orders-3, topic 'orders', partition 3, cannot be "
        "read as json: DECODE_FAILED: "
    )
    assert "because 'mode' is FAILFAST, and nothing of the batch is committed. Hint: Check 'valueFormat', " in text
    assert "'valueFormat', 'valueFraming' and 'valueSchema'" in text
    assert "secret" not in text
    assert caught.value.parameters == {
        "topic": "orders",
        "partition": "3",
        "offset": "42",
        "column": "value",
        "reason": "DECODE_FAILED",
    }


def test_permissive_keeps_bad_records_in_their_places() -> None:
    formats = replace(FORMATS, mode="PERMISSIVE")
    found = read(formats, values(b"{", document(1), None, b'{"id": "x"}'))
    assert found.column("value").to_pylist() == [None, {"id": 1, "name": "n1"}, None, None]
    corrupt = found.column("_corrupt_record").to_pylist()
    assert [each and each["reason"] for each in corrupt] == ["DECODE_FAILED", None, None, "TYPE_MISMATCH"]
    last = corrupt[3]
    assert last.pop("message") == "the value of field 'id' has another type"
    assert last == {
        "column": "value",
        "reason": "TYPE_MISMATCH",
        "schemaId": None,
        "rawKey": b"k",
        "rawValue": b'{"id": "x"}',
    }


def test_permissive_has_no_corrupt_record_where_all_are_good() -> None:
    found = read(replace(FORMATS, mode="PERMISSIVE"), values(document(1), None))
    assert found.column("_corrupt_record").to_pylist() == [None, None]
    assert found.column("_corrupt_record").null_count == 2


def test_permissive_names_the_key_where_both_are_bad() -> None:
    formats = replace(BOTH, mode="PERMISSIVE")
    found = read(formats, [(b"{", b"["), (b'{"k": 1}', b"["), (b"{", document(1)), (b'{"k": 2}', document(2))])
    assert [each and each["column"] for each in found.column("_corrupt_record").to_pylist()] == [
        "key",
        "value",
        "key",
        None,
    ]
    # What is good of a bad record stays.
    assert found.column("key").to_pylist() == [None, {"k": 1}, None, {"k": 2}]
    assert found.column("value").to_pylist() == [None, None, {"id": 1, "name": "n1"}, {"id": 2, "name": "n2"}]


def test_permissive_without_the_column_of_corrupt_records_has_nulls_alone() -> None:
    found = read(replace(FORMATS, mode="PERMISSIVE"), values(b"{", document(1)), ["value"])
    assert found.column("value").to_pylist() == [None, {"id": 1, "name": "n1"}]


def test_the_column_of_corrupt_records_alone_tells_of_keys_and_values() -> None:
    formats = replace(BOTH, mode="PERMISSIVE")
    pairs = [(b"{", document(1)), (b'{"k": 1}', b"{"), (b'{"k": 1}', document(1))]
    found = read(formats, pairs, ["_corrupt_record"])
    assert [each and each["column"] for each in found.column(0).to_pylist()] == ["key", "value", None]
    assert [each and each["rawValue"] for each in found.column(0).to_pylist()] == [document(1), b"{", None]


def test_a_part_of_the_fields_of_corrupt_records_may_be_asked_for() -> None:
    formats = replace(FORMATS, mode="PERMISSIVE")
    part = pa.struct([("rawValue", pa.binary()), ("reason", pa.string())])
    found = read_with(TypedBatches(pa.schema([("_corrupt_record", part)]), formats), values(b"{", document(1)))
    assert found.to_pylist() == [
        {"_corrupt_record": {"rawValue": b"{", "reason": "DECODE_FAILED"}},
        {"_corrupt_record": None},
    ]


@pytest.mark.parametrize(
    ("texts", "kept"),
    [
        ([b"{", document(1), b"[", None, document(2)], [41, 43, 44]),
        ([b"{", b"[", b"x"], []),
        ([document(1), document(2)], [40, 41]),
    ],
)
def test_dropmalformed_leaves_bad_records_out(texts: list[bytes | None], kept: list[int]) -> None:
    found = read(replace(FORMATS, mode="DROPMALFORMED"), values(*texts))
    assert found.column("offset").to_pylist() == kept
    assert found.column("topic").to_pylist() == ["orders"] * len(kept)
    assert all(row["value"] is not None or row["offset"] == 43 for row in found.to_pylist())


def test_dropmalformed_leaves_a_record_out_whose_key_or_value_is_bad() -> None:
    formats = replace(BOTH, mode="DROPMALFORMED")
    found = read(formats, [(b"{", document(1)), (b'{"k": 1}', b"{"), (b"{", b"{"), (b'{"k": 2}', document(2))])
    assert found.column("offset").to_pylist() == [43]


def test_columns_that_are_not_asked_for_are_neither_decoded_nor_judged() -> None:
    decoder = FakeDecoder()
    found = read(BOTH, [(b"{", document(1))], ["value", "offset"], value=decoder)
    assert found.column("offset").to_pylist() == [40]
    assert decoder.calls == 1
    batches = TypedBatches(pa.schema([schema_of(BOTH).field("value")]), BOTH)
    assert batches.raw_columns == ("value", "offset")
    assert read(BOTH, [(b'{"k": 3}', b"{")], ["key"]).to_pylist() == [{"key": {"k": 3}}]


def test_empty_values_are_bad_and_null_ones_are_not() -> None:
    found = read(replace(FORMATS, mode="PERMISSIVE"), values(b"", None))
    assert found.column("value").to_pylist() == [None, None]
    assert [each is None for each in found.column("_corrupt_record").to_pylist()] == [False, True]


def test_a_batch_that_is_a_slice_of_a_larger_one_is_read_as_it_is() -> None:
    batches = TypedBatches(schema_of(FORMATS), replace(FORMATS, mode="DROPMALFORMED"))
    assembler = batches.assembler(PLACE)
    data = batch([record(at, b"{" if at % 3 == 0 else document(at), key=b"k") for at in range(20)])
    decoded = decode(data, start_offset=0, columns=assembler.decoded_columns)
    found = assembler.assemble(decoded._replace(batch=decoded.batch.slice(5, 10)))
    assert found.column("offset").to_pylist() == [at for at in range(5, 15) if at % 3]
    assert [row["id"] for row in found.column("value").to_pylist()] == found.column("offset").to_pylist()


def test_a_subset_of_the_fields_in_another_order_is_read() -> None:
    narrow = pa.struct([("name", pa.string())])
    formats = replace(FORMATS, value=replace(JSON, arrow_type=narrow))
    assert read(formats, values(document(5)), ["value"]).to_pylist() == [{"value": {"name": "n5"}}]


class FakeDecoder:
    """Returns null structs and ids; rows with the value `bad` are bad."""

    def __init__(self, error: Exception | None = None) -> None:
        self.calls = 0
        self.error = error
        self.headers: list[Any] = []

    def decode(self, found: pa.Array, headers: pa.Array | None = None) -> DecodedColumn:
        """Return what the class says."""
        self.calls += 1
        self.headers.append(headers)
        if self.error is not None:
            raise self.error
        texts = found.to_pylist()
        bad = [BadValue(row, Reason.DECODE_FAILED, "it is bad") for row, text in enumerate(texts) if text == b"bad"]
        ids = pa.array([None if text is None else str(row) for row, text in enumerate(texts)])
        return DecodedColumn(pa.nulls(len(texts), VALUE), bad, ids)


FRAMED = replace(FORMATS, value=replace(JSON, framing="confluent"), include_schema_id=True)


def test_ids_of_schemas_are_columns_and_are_named_with_bad_records() -> None:
    formats = replace(FRAMED, mode="PERMISSIVE")
    found = read(formats, values(b"good", b"bad", None), value=FakeDecoder())
    assert found.column("value_schema_id").to_pylist() == ["0", "1", None]
    assert [each and each["schemaId"] for each in found.column("_corrupt_record").to_pylist()] == [None, "1", None]
    with pytest.raises(RecordError, match="cannot be read as json with schema 1: DECODE_FAILED: it is bad") as caught:
        read(FRAMED, values(b"good", b"bad"), value=FakeDecoder())
    assert caught.value.parameters["schema_id"] == "1"


def test_ids_of_schemas_can_be_asked_for_without_the_values() -> None:
    assert read(FRAMED, values(b"a", b"b"), ["value_schema_id"], value=FakeDecoder()).to_pylist() == [
        {"value_schema_id": "0"},
        {"value_schema_id": "1"},
    ]


def test_headers_are_read_for_the_framing_that_needs_them_and_not_returned() -> None:
    decoder = FakeDecoder()
    formats = replace(FRAMED, value=replace(JSON, framing="confluentHeader"))
    assert "headers" not in read(formats, values(b"a"), value=decoder).schema.names
    assert decoder.headers[0].to_pylist() == [None]
    other = FakeDecoder()
    read(FRAMED, values(b"a"), value=other)
    assert other.headers == [None]


def test_an_outage_of_the_registry_names_the_offsets_and_is_no_bad_record() -> None:
    error = RegistryError("The registry did not answer.", condition="REGISTRY_UNREACHABLE", hint="Wait.")
    batches = TypedBatches(schema_of(FRAMED), replace(FRAMED, mode="DROPMALFORMED"), {"value": FakeDecoder(error)})  # type: ignore[dict-item]
    with pytest.raises(RegistryError) as caught:
        read_with(batches, values(b"a", b"b"))
    assert said(caught.value) == (
        "[REGISTRY_UNREACHABLE] Reading the values of orders-3, offsets 40 to 41: The registry did not answer. "
        "Hint: Wait."
    )
    assert batches.bad_records.bad == 0


def test_a_decoder_is_built_once_for_the_tasks_of_a_worker() -> None:
    first, second = TypedBatches(schema_of(BOTH), BOTH), TypedBatches(schema_of(BOTH), BOTH)
    assert first._decoders["value"] is second._decoders["value"]
    assert first._decoders["key"] is not first._decoders["value"]


def test_reads_of_bytes_have_the_assembler_of_bytes() -> None:
    schema = source_schema(include_headers=False)
    assemblers = Assemblers(schema, None)
    assert type(assemblers.assembler(PLACE)) is BatchAssembler
    assemblers.finish()
    assemblers.close()


def test_too_many_bad_records_are_an_error_at_the_end_of_a_short_read() -> None:
    formats = replace(FORMATS, mode="PERMISSIVE", max_corrupt_ratio=0.4)
    assemblers = Assemblers(schema_of(formats), formats)
    assembler = assemblers.assembler(PLACE)
    data = batch([record(0, b"{"), record(1, document(1))])
    assert assembler.assemble(decode(data, start_offset=0, columns=assembler.decoded_columns)).num_rows == 2
    with pytest.raises(RecordError, match=r"\[TOO_MANY_BAD_RECORDS\] 1 of 2 records"):
        assemblers.finish()
