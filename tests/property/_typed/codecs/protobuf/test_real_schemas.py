"""Messages of real schemas, as Google's runtime has them, through all that a read and a write of Spark do."""

from __future__ import annotations

from functools import cache

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.real_protobuf import (
    PACKAGES,
    RealMessage,
    check_row,
    class_of,
    few_columns,
    has_group,
    messages_in,
    schema_of,
    values_of,
)
from kit.spark_columns import SparkCodec, codec_of_spark
from pyspark_kafka._client.options import FormatOptions
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema
from pyspark_kafka.errors import SchemaError

QUICK = settings.get_profile("quick").max_examples
EXAMPLES = settings.get_profile("full of whole schemas" if settings().max_examples > QUICK else "quick")


@cache
def codec_of(message: RealMessage) -> SparkCodec:
    schema = RegisteredSchema("PROTOBUF", schema_of(message.package, message.file))
    return codec_of_spark(FormatOptions("protobuf", "none", message=message.name), schema)


@cache
def chosen(package: str, examples: int) -> list[RealMessage]:
    """Return the messages of a package; with few examples, those that take a moment, of each file some."""
    found = messages_in(package)
    if examples > QUICK:
        return found
    return [each for number, each in enumerate(found) if number % 3 == 0 and few_columns(each)]


@pytest.mark.parametrize("package", PACKAGES)
@settings(
    EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
)
@given(data=st.data())
def test_messages_of_real_schemas_are_read_and_written_as_google_has_them(package: str, data: st.DataObject) -> None:
    message = data.draw(st.sampled_from(chosen(package, EXAMPLES.max_examples)))
    made = class_of(message)
    if has_group(made.DESCRIPTOR):
        with pytest.raises(SchemaError, match="is a group of proto2"):
            codec_of(message)
        return
    decoder, encoder = codec_of(message)
    rows = data.draw(st.lists(st.none() | values_of(made), min_size=1, max_size=3))
    values = [None if each is None else each.SerializeToString() for each in rows]
    read = decoder.decode(pa.array(values, pa.binary()))
    read.column.validate(full=True)
    assert read.bad == []
    for found, wanted in zip(read.column.to_pylist(), rows, strict=True):
        check_row(found, wanted, decoder.arrow_type, message.name)
    written = encoder.encode(read.column).to_pylist()
    assert [None if text is None else made.FromString(text) for text in written] == rows
