"""The table of docs/troubleshooting.md about data loss: every condition, in the words of the errors themselves."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._client.client.fetch.cursor import Cursor
from pyspark_kafka._client.client.fetch.errors import OffsetOutOfRangeError, log_truncated, topic_recreated
from pyspark_kafka._client.client.fetch.request import RecordSizes
from pyspark_kafka._client.options import ConnectionOptions, FetchOptions
from pyspark_kafka._connector.planning import DataLoss, DataLossKind, data_loss_error
from pyspark_kafka._connector.source.driver.topic_watch import TopicWatch
from pyspark_kafka._connector.source.executor.range_decoder import resume_or_raise
from pyspark_kafka.errors import ConnectorError, DataLossError

_PAGE = Path(__file__).parents[2] / "docs" / "troubleshooting.md"
P = TopicPartition("orders", 3)


def rows() -> list[list[str]]:
    """Return the cells of the table, row by row."""
    section = _PAGE.read_text(encoding="utf-8").split("## Data loss")[1]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:3] == "| `"]


def reading(start: int, end: int, topic_id: uuid.UUID | None = None) -> Cursor:
    return Cursor(OffsetRange(P, start, end), FetchOptions(), ConnectionOptions(()), RecordSizes(), topic_id)


def raised(call: Callable[[], object]) -> ConnectorError:
    with pytest.raises(ConnectorError) as caught:
        call()
    return caught.value


def out_of_range() -> ConnectorError:
    error = OffsetOutOfRangeError("", code=1, condition="OFFSET_OUT_OF_RANGE")
    error.offset_range = OffsetRange(P, 10, 90)
    error.requested_offset, error.log_start_offset, error.log_end_offset = 10, 40, 100
    return raised(lambda: resume_or_raise(error, error.offset_range, fail_on_data_loss=True))


def recreated_in_a_task() -> ConnectorError:
    return topic_recreated(reading(40, 120, uuid.uuid4()), uuid.uuid4(), leader_id=0)


def truncated() -> ConnectorError:
    cursor = reading(0, 40)
    cursor.resume(10)
    return log_truncated(cursor, position_epoch=3, leader_epoch=4, end_offset=6)


def recreated_in_planning() -> ConnectorError:
    watch = TopicWatch(None, "sources/0")
    watch.meet({"orders": "one"})
    return watch.error(["orders"], {"orders": "another"})


ERRORS: dict[str, Callable[[], ConnectorError]] = {
    "PARTITIONS_DELETED": lambda: data_loss_error([DataLoss(DataLossKind.PARTITIONS_DELETED, P, 120)]),
    "INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS": lambda: data_loss_error(
        [DataLoss(DataLossKind.INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS, P)]
    ),
    "ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO": lambda: data_loss_error(
        [DataLoss(DataLossKind.ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO, P, 0, 20)]
    ),
    "PARTITION_OFFSET_CHANGED": lambda: data_loss_error([DataLoss(DataLossKind.PARTITION_OFFSET_CHANGED, P, 120, 20)]),
    "TOPIC_RECREATED, in planning": recreated_in_planning,
    "TOPIC_RECREATED, in a task": recreated_in_a_task,
    "COULD_NOT_READ_OFFSET_RANGE": out_of_range,
    "LOG_TRUNCATED": truncated,
}


@pytest.mark.parametrize("name", ERRORS)
def test_the_page_says_what_the_error_says(name: str) -> None:
    (row,) = (row for row in rows() if row[0].replace("`", "").startswith(name))
    error = ERRORS[name]()
    assert isinstance(error, DataLossError)
    assert error.condition == f"KAFKA_DATA_LOSS.{name.partition(',')[0]}"
    for part in row[1].strip("`").split(" … "):
        assert part in str(error)


def test_the_page_has_every_condition() -> None:
    listed = " ".join(row[0] for row in rows()).replace("also with `_AND", "`PARTITIONS_DELETED_AND")
    assert {kind.value for kind in DataLossKind} <= set(re.findall(r"[A-Z_]{8,}", listed))
    assert len(rows()) == len(ERRORS)
