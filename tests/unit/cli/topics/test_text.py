"""How topics are shown: cells, sentences, JSON."""

from __future__ import annotations

import json

import pytest

from pyspark_kafka.cli.topics import text
from pyspark_kafka.client.admin.topic_configs import ConfigSource, TopicConfig
from pyspark_kafka.model import TopicPartition
from pyspark_kafka.operations.topics.asking import Creation
from pyspark_kafka.operations.topics.descriptions import DescribedPartition, TopicDescription
from pyspark_kafka.operations.topics.sizes import LedLog, LogSizes, SizesBy
from pyspark_kafka.operations.topics.summaries import TopicSummary

ORDERS = TopicSummary("orders", 6, 3, is_internal=False, under_replicated=0, leaderless=0)
DESCRIBED = TopicDescription(
    "orders",
    None,
    is_internal=False,
    partitions=(
        DescribedPartition(0, 1, (1, 2), (1, 2), 5, 9),
        DescribedPartition(1, 2, (2, 1), (2,), 0, None),
        DescribedPartition(2, -1, (3,), (), None, None),
    ),
    brokers={1: "one:9092"},
    configs=(TopicConfig("sasl", None, ConfigSource.BROKER),),
    missing=("Broker 2 is away.",),
)
SIZES = LogSizes(
    {TopicPartition("a", 0): LedLog(1, 2048), TopicPartition("b", 0): LedLog(2, None)}, {1: "one:9092"}, ("Away.",)
)


def test_topic_that_is_well_has_nothing_to_say() -> None:
    assert text.summary_cells(ORDERS) == ["orders", "6", "3", ""]


def test_topic_that_is_not_well_says_why() -> None:
    ill = TopicSummary("t", 6, 3, is_internal=False, under_replicated=2, leaderless=1)
    assert text.summary_cells(ill)[-1] == "1 without a leader, 2 under-replicated"


@pytest.mark.parametrize(
    ("done", "configs", "said"),
    [
        (Creation(True, ORDERS), {}, "Topic 'orders' is created: 6 partitions, replication factor 3."),
        (
            Creation(True, ORDERS),
            {"retention.ms": "1", "x": "\x1b"},
            "Topic 'orders' is created: 6 partitions, replication factor 3, retention.ms=1, x=\\x1b.",
        ),
        (
            Creation(False, ORDERS, ("It has 6 partitions, not 1.",)),
            {"a": "b"},
            (
                "Topic 'orders' exists already (6 partitions, replication factor 3), and is left as it is. It has 6 "
                "partitions, not 1. Its configuration was not compared."
            ),
        ),
    ],
)
def test_creation_says_what_there_is_now(done: Creation, configs: dict[str, str], said: str) -> None:
    assert text.creation_text(done, configs) == said


def test_partitions_show_what_is_not_known_and_what_is_not_well() -> None:
    assert text.partition_rows(DESCRIBED) == [
        ["0", "1 (one:9092)", "1, 2", "1, 2", "5", "9", "4", ""],
        ["1", "2 (not known)", "2, 1", "2", "0", "?", "?", "under-replicated: 1 not in sync"],
        ["2", "none", "3", "", "?", "?", "?", "no leader"],
    ]


def test_description_leaves_out_what_is_not_known() -> None:
    assert text.description_line(DESCRIBED) == "Topic 'orders': 3 partitions, replication factor 2."


def test_hidden_value_of_a_configuration_is_said_to_be_hidden() -> None:
    assert text.config_cells(TopicConfig("a", None, ConfigSource.TOPIC)) == ["a", "(hidden)", "topic"]


def test_description_for_programs_has_null_for_what_is_not_known() -> None:
    told = json.loads(json.dumps(text.description_to_json(DESCRIBED)))
    assert (told["records_at_most"], told["missing"]) == (None, ["Broker 2 is away."])
    assert told["partitions"][1] == {
        "partition": 1,
        "leader": 2,
        "replicas": [2, 1],
        "in_sync": [2],
        "begin": 0,
        "end": None,
        "records_at_most": None,
        "under_replicated": True,
    }
    assert told["partitions"][2]["leader"] is None
    assert told["configs"] == [{"name": "sasl", "value": None, "source": "broker"}]


def test_sizes_have_bars_as_long_as_they_are_large() -> None:
    columns = [column.name for column in text.size_columns("topic")]
    assert columns == ["topic", "size", "bytes", "partitions", "led by", ""]
    assert text.size_rows(SIZES.rows("topic"), "topic", ascii_only=True) == [
        ["a", "2.00 KiB", "2048", "1", "1", "#" * 24],
        ["b", "?", "?", "1 (1 not known)", "2", ""],
    ]


@pytest.mark.parametrize(("by", "cells"), [("partition", 5), ("broker", 5), ("topic", 6)])
def test_rows_of_sizes_have_a_cell_for_each_column(by: SizesBy, cells: int) -> None:
    assert len(text.size_columns(by)) == cells
    assert {len(row) for row in text.size_rows(SIZES.rows(by), by, ascii_only=False)} == {cells}


def test_sizes_for_programs_have_null_for_what_is_not_known() -> None:
    told = text.sizes_to_json(SIZES, "topic", SIZES.rows("topic")[1:])
    assert told == {
        "bytes": 2048,
        "partitions": 2,
        "by": "topic",
        "sizes": [{"topic": "b", "bytes": None, "partitions": 1, "unknown_partitions": 1, "leaders": [2]}],
        "brokers": {"1": "one:9092"},
        "missing": ["Away."],
    }
