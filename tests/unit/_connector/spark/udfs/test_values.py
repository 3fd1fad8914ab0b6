"""What functions on columns do to arrays, without Spark; tests/integration has them on Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kit.pickled import copied
from pyspark_kafka._connector.spark.udfs.values import ArrayDecoding, ArrayEncoding, OnBadValue
from pyspark_kafka._typed.typed.value_plans import plan_encoding, plan_values
from pyspark_kafka.errors import OptionError, RecordError
from pyspark_kafka.formats import decode_udf, encode_udf

NOTHING: dict[str, Any] = dict.fromkeys(("framing", "message", "registry", "subject", "schema_version"))
VALUES = pa.array([b'{"id":1}', b"{", None])


def decoding(on_bad: OnBadValue) -> ArrayDecoding:
    return copied(ArrayDecoding(plan_values("json", schema="id BIGINT", **NOTHING), on_bad, is_key=False))


def test_bad_values_are_null_or_explained_or_an_error() -> None:
    (found,) = decoding("null")([VALUES])
    assert found.to_pylist() == [{"id": 1}, None, None]
    explained = decoding("explain")
    (found,) = explained([VALUES])
    reason = {"reason": "DECODE_FAILED", "message": "it ends in the middle of a document", "schemaId": None}
    assert found.type == explained.arrow_type
    assert found.to_pylist() == [
        {"value": {"id": 1}, "bad": None},
        {"value": None, "bad": reason},
        {"value": None, "bad": None},
    ]
    with pytest.raises(RecordError, match="Row 1 of an Arrow batch cannot be read as json: DECODE_FAILED"):
        list(decoding("raise")([VALUES[:1], VALUES]))


def test_ids_in_headers_need_the_column_of_headers() -> None:
    plan = plan_values("json", schema="id BIGINT", **{**NOTHING, "framing": "confluentHeader"})
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    headers = pa.array([[{"key": "__value_schema_id", "value": b"\0\0\0\0\7"}], [], None], kind)
    (found,) = ArrayDecoding(plan, "explain", is_key=False)([(VALUES.take(pa.array([0, 0, 2])), headers)])
    assert [each["value"] for each in found.to_pylist()] == [{"id": 1}, None, None]
    with pytest.raises(OptionError, match="'columns of the function' is 1, and must be 2: values and headers"):
        list(ArrayDecoding(plan, "null", is_key=False)([VALUES]))
    with pytest.raises(OptionError, match="'columns of the function' is 2, and must be 1: values"):
        list(decoding("null")([(VALUES, headers)]))


def test_columns_are_encoded_and_nulls_stay() -> None:
    plan = plan_encoding("json", schema=None, schema_id=None, **NOTHING)
    first, second = copied(ArrayEncoding(plan))([pa.array([{"id": 1}, None]), pa.array([{"id": 2}])])
    assert (first.to_pylist(), second.to_pylist()) == ([b'{"id":1}', None], [b'{"id":2}'])


def test_arguments_that_cannot_be_used_are_refused_before_a_task_runs() -> None:
    with pytest.raises(OptionError, match="'on_bad' is 'skip', and must be 'raise', 'null' or 'explain'"):
        decode_udf("json", schema="id BIGINT", on_bad="skip")  # type: ignore[arg-type] # the mistake that is tested
    with pytest.raises(OptionError, match="Argument 'schema' must be set with avro"):
        encode_udf("avro")
