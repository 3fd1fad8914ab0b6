"""Kafka as a table: driven through the contracts of the connector API alone, as any engine does."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path

import pytest

from pyspark_kafka._connector.source.executor.columns import SOURCE_SCHEMA, source_schema
from pyspark_kafka._connector.spark.data_source import KafkaDataSource
from pyspark_kafka._connector.table.kafka_table import KafkaTable
from pyspark_kafka.connector import LogicalWriteInfo, SupportsRead, SupportsWrite, TableCapability
from pyspark_kafka.errors import OptionError

SPARK = Path(__file__).parents[4] / "src" / "pyspark_kafka" / "_connector" / "spark"
READ = {"kafka.bootstrap.servers": "b:9092", "subscribe": "t"}
# What runs any table.
ADAPTERS = ("readers.py", "writers.py", "filters.py", "table_source.py", "compat.py")


def test_table_has_the_name_by_which_spark_finds_it() -> None:
    assert KafkaTable().name() == KafkaDataSource.name()
    assert isinstance(KafkaDataSource.table(), KafkaTable)


def test_table_names_what_kafka_can_do_and_cannot_be_emptied() -> None:
    named = KafkaTable().capabilities()
    assert {
        TableCapability.BATCH_READ,
        TableCapability.MICRO_BATCH_READ,
        TableCapability.CONTINUOUS_READ,
        TableCapability.BATCH_WRITE,
        TableCapability.STREAMING_WRITE,
    } <= named
    assert TableCapability.TRUNCATE not in named


def test_table_pickles_and_has_no_state() -> None:
    again = pickle.loads(pickle.dumps(KafkaTable()))  # noqa: S301 - our own bytes
    assert isinstance(again, SupportsRead)
    assert isinstance(again, SupportsWrite)
    assert vars(again) == {}


def test_schema_has_headers_only_if_the_option_asks_for_them() -> None:
    assert KafkaTable().schema(READ) == source_schema(include_headers=False)
    assert KafkaTable().schema({**READ, "INCLUDEHEADERS": "true"}) == SOURCE_SCHEMA


def test_schema_refuses_options_that_no_read_takes() -> None:
    with pytest.raises(OptionError, match="bootstrap"):
        KafkaTable().schema({"subscribe": "t"})


def test_builders_are_made_without_a_look_at_the_options() -> None:
    """A builder does not know the kind of query, and another kind has other options."""
    KafkaTable().newScanBuilder({}).build()
    KafkaTable().newWriteBuilder(LogicalWriteInfo({}, source_schema(include_headers=False))).build()


@pytest.mark.parametrize("module", ADAPTERS)
def test_adapters_of_pyspark_know_nothing_of_kafka(module: str) -> None:
    tree = ast.parse((SPARK / module).read_text(encoding="utf-8"))
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    ours = {name for name in imported if name.startswith("pyspark_kafka.")}
    assert ours != set()
    allowed = (
        "pyspark_kafka.connector",
        "pyspark_kafka._base.counters",
        "pyspark_kafka._connector.spark.",
        "pyspark_kafka.errors",
        # Any table may keep a checkpoint, and a path without a scheme is Spark's rule, not Kafka's.
        "pyspark_kafka.checkpoint.default_file_system",
    )
    assert {name for name in ours if not name.startswith(allowed)} == set()
