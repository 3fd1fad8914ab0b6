"""One read of Kafka as a plan: which columns it has, and when what the user set is checked."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka._connector.source.driver.batch import KafkaBatch
from pyspark_kafka._connector.source.driver.continuous import KafkaContinuousStream
from pyspark_kafka._connector.source.executor.columns import SOURCE_SCHEMA, source_schema
from pyspark_kafka._connector.source.input_partition import (
    KafkaContinuousPartitionReaderFactory,
    KafkaPartitionReaderFactory,
)
from pyspark_kafka._connector.table.scan import KafkaScan, KafkaScanBuilder
from pyspark_kafka.errors import OptionError, SchemaError

READ = {"kafka.bootstrap.servers": "b:9092", "subscribe": "a,b"}
TWO = pa.schema([pa.field("offset", pa.int64()), pa.field("key", pa.binary())])
KINDS: dict[str, Callable[[KafkaScan], Any]] = {
    "batch": KafkaScan.toBatch,
    "stream": lambda scan: scan.toMicroBatchStream(None),
    "continuous": lambda scan: scan.toContinuousStream(None),
}


def pruned(options: Mapping[str, str], columns: pa.Schema) -> KafkaScan:
    builder = KafkaScanBuilder(options)
    builder.pruneColumns(columns)
    return builder.build()


def schema_of(made: Any) -> pa.Schema:
    continuous = isinstance(made, KafkaContinuousStream)
    factory = made.createContinuousReaderFactory() if continuous else made.createReaderFactory()
    assert isinstance(factory, (KafkaPartitionReaderFactory, KafkaContinuousPartitionReaderFactory))
    return factory.schema


def test_scan_reads_all_columns_if_none_are_asked_for() -> None:
    scan = KafkaScanBuilder({**READ, "includeHeaders": "true"}).build()
    assert scan.readSchema() == SOURCE_SCHEMA
    assert schema_of(scan.toBatch()) == SOURCE_SCHEMA
    assert KafkaScanBuilder(READ).build().readSchema() == source_schema(include_headers=False)


@pytest.mark.parametrize("kind", KINDS)
def test_readers_return_the_columns_that_are_asked_for_in_their_order(kind: str) -> None:
    scan = pruned(READ, TWO)
    made = KINDS[kind](scan)
    assert scan.readSchema() is TWO
    assert schema_of(made) is TWO


@pytest.mark.parametrize("kind", KINDS)
def test_columns_that_do_not_exist_are_refused_when_the_read_is_built(kind: str) -> None:
    scan = pruned(READ, pa.schema([("payload", pa.binary()), ("headers", pa.binary()), ("offset", pa.int32())]))
    with pytest.raises(SchemaError) as caught:
        KINDS[kind](scan)
    assert str(caught.value).startswith(
        "[SCHEMA_MISMATCH.SOURCE] The schema given to the reader does not fit: there is no column 'payload'; column "
        "'headers' needs option 'includeHeaders' set to true; column 'offset' is int64, not int32. "
    )


def test_error_names_the_kind_of_read_that_an_option_does_not_fit() -> None:
    options = {**READ, "endingOffsets": "latest"}
    assert isinstance(pruned(options, TWO).toBatch(), KafkaBatch)
    with pytest.raises(OptionError, match="'endingOffsets' has no meaning in a streaming read"):
        pruned(options, TWO).toMicroBatchStream(None)


def test_options_are_checked_before_the_columns() -> None:
    with pytest.raises(OptionError, match="bootstrap"):
        pruned({"subscribe": "t"}, pa.schema([("payload", pa.binary())])).toBatch()


@pytest.mark.parametrize("kind", [*KINDS, "neither"])
def test_description_is_the_subscription(kind: str) -> None:
    scan = KafkaScanBuilder(READ).build()
    KINDS.get(kind, id)(scan)
    assert scan.description() == "Subscribe[a, b]"


def test_notes_tell_the_options_without_effect() -> None:
    scan = KafkaScanBuilder({**READ, "maxTriggerDelay": "5m"}).build()
    scan.toMicroBatchStream(None)
    assert scan.notes()[:1] == ("Option 'maxTriggerDelay' has no effect: 'minOffsetsPerTrigger' is not given.",)


@pytest.mark.parametrize("kind", KINDS)
def test_readers_know_the_formats_of_the_columns_that_are_asked_for(kind: str) -> None:
    typed = {**READ, "valueFormat": "json", "valueSchema": "id BIGINT, name STRING"}
    narrow = pa.struct([("name", pa.string())])
    value, offset = pa.field("value", narrow), pa.field("offset", pa.int64())

    def formats_of(columns: pa.Schema) -> Any:
        made = KINDS[kind](pruned(typed, columns))
        continuous = isinstance(made, KafkaContinuousStream)
        factory = made.createContinuousReaderFactory() if continuous else made.createReaderFactory()
        return pickle.loads(pickle.dumps(factory)).formats  # noqa: S301 - as Spark sends it

    found = formats_of(pa.schema([offset, value]))
    assert (found.value.format, found.value.arrow_type, found.key) == ("json", narrow, None)
    assert formats_of(pa.schema([offset])) is None
    whole = KafkaScanBuilder(typed).build()
    assert whole.readSchema().field("value").type == pa.struct([("id", pa.int64()), ("name", pa.string())])
    assert schema_of(KINDS[kind](whole)) == whole.readSchema()
