"""The texts of data loss that planning finds."""

from __future__ import annotations

import pytest

from kit.texts import said
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._connector.planning import (
    DataLoss,
    DataLossKind,
    data_loss_error,
)

P = [TopicPartition("orders", number) for number in range(40)]

HINT = (
    " Hint: Set failOnDataLoss to false to continue with the remaining records, or start with a new checkpointLocation."
)

MOVE = (
    " Hint: Accept this loss once: move the query to offsets that the log has, with `pyspark-kafka checkpoint rewind` "
    "and --offsets (-2 is the beginning of a log). Or accept every loss: set failOnDataLoss to false."
)

LOST = (
    "Some data may have been lost because it is not in Kafka any more: it was removed by retention, or the topic was "
    "deleted before all of it was processed. "
)

GONE = (
    "Some data may have been lost because it is not in Kafka any more: the topic was deleted before all of it was "
    "processed, or left the subscription. "
)

BACK = "the topic may have been recreated, or the start offset of the first batch is too high"


@pytest.mark.parametrize(
    ("finding", "text"),
    [
        (
            DataLoss(DataLossKind.PARTITIONS_DELETED, P[3], 120),
            (
                f"[KAFKA_DATA_LOSS.PARTITIONS_DELETED] {GONE}orders-3: the partition was read up to 120, and has "
                f"been deleted or left the subscription. Nothing more was read.{HINT}"
            ),
        ),
        (
            DataLoss(DataLossKind.PARTITIONS_DELETED_AND_GROUP_ID_CONFIG_PRESENT, P[3], 120, group_id="g"),
            (
                f"[KAFKA_DATA_LOSS.PARTITIONS_DELETED_AND_GROUP_ID_CONFIG_PRESENT] {GONE}orders-3: the partition was "
                "read up to 120, and has been deleted or left the subscription; option 'kafka.group.id' is 'g', but no "
                "consumer group is joined, so no other query of the group can have taken it. Nothing more was read."
                f"{HINT}"
            ),
        ),
        (
            DataLoss(DataLossKind.PARTITION_OFFSET_CHANGED, P[3], 120, 20),
            (
                "[KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED] Some data may have been lost because it is not in Kafka "
                f"any more: {BACK}. orders-3: the offset to continue from was 120, but the log now ends at 20, 100 "
                f"offsets [20, 120) missing. Nothing more was read.{MOVE}"
            ),
        ),
        (
            DataLoss(DataLossKind.ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO, P[3], 0, 20),
            (
                f"[KAFKA_DATA_LOSS.ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO] {LOST}orders-3: the new partition "
                f"starts from 20 instead of 0, 20 offsets [0, 20) missing. Nothing more was read.{HINT}"
            ),
        ),
        (
            DataLoss(DataLossKind.INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS, P[3]),
            (
                f"[KAFKA_DATA_LOSS.INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS] {LOST}"
                f"orders-3: the first offset of the new "
                f"partition cannot be found, it may have been deleted. Nothing more was read.{HINT}"
            ),
        ),
    ],
    ids=lambda value: value.kind.value if isinstance(value, DataLoss) else "text",
)
def test_each_kind_of_data_loss_has_its_text(finding: DataLoss, text: str) -> None:
    assert said(data_loss_error([finding])) == text


def test_every_kind_has_a_sentence_of_its_own() -> None:
    sentences = {DataLoss(kind, P[0], 1, 2).describe() for kind in DataLossKind}
    assert len(sentences) == len(DataLossKind)


def test_several_kinds_are_all_named() -> None:
    error = data_loss_error(
        [
            DataLoss(DataLossKind.PARTITIONS_DELETED, P[0], 5),
            DataLoss(DataLossKind.PARTITION_OFFSET_CHANGED, P[1], 9, 1),
        ]
    )
    assert error.condition == "KAFKA_DATA_LOSS"
    assert "PARTITIONS_DELETED orders-0: " in str(error)
    assert "; PARTITION_OFFSET_CHANGED orders-1: " in str(error)
    assert error.parameters["count"] == "2"


def test_cause_is_named_once_for_all_partitions() -> None:
    text = said(data_loss_error([DataLoss(DataLossKind.PARTITION_OFFSET_CHANGED, tp, 9, 1) for tp in P]))
    assert text.count(BACK) == 1
    assert len(text) < 2_500


def test_a_long_list_of_partitions_is_cut_and_counted() -> None:
    error = data_loss_error([DataLoss(DataLossKind.PARTITIONS_DELETED, tp, 5) for tp in P])
    assert "orders-19:" in str(error)
    assert "orders-20:" not in str(error)
    assert "; and 20 more partitions. " in str(error)
