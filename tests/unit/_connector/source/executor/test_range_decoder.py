"""What a tolerated loss counts: the figure that operators are woken by."""

from __future__ import annotations

import uuid

import pytest

from pyspark_kafka._base.counters import LOST_OFFSETS, Counters
from pyspark_kafka._base.model import NO_END, OffsetRange, TopicPartition
from pyspark_kafka._client.client.fetch.cursor import Cursor
from pyspark_kafka._client.client.fetch.errors import (
    LogTruncatedError,
    OffsetOutOfRangeError,
    log_truncated,
    out_of_range,
    topic_deleted,
    topic_recreated,
)
from pyspark_kafka._client.client.fetch.request import RecordSizes
from pyspark_kafka._client.options import ConnectionOptions, FetchOptions
from pyspark_kafka._connector.source.executor import range_decoder
from pyspark_kafka._connector.source.executor.range_decoder import leave_deleted, resume_or_raise
from pyspark_kafka.errors import DataLossError

P = TopicPartition("orders", 3)


@pytest.fixture
def counters(monkeypatch: pytest.MonkeyPatch) -> Counters:
    found = Counters()
    monkeypatch.setattr(range_decoder, "COUNTERS", found)
    return found


def at_ten(end: int) -> Cursor:
    """Return the cursor of a range of a planned topic, of which the records below 10 were handed out."""
    cursor = Cursor(OffsetRange(P, 0, end), FetchOptions(), ConnectionOptions(()), RecordSizes(), uuid.uuid4())
    cursor.resume(10)
    return cursor


def recreated(end: int) -> LogTruncatedError:
    return topic_recreated(at_ten(end), uuid.uuid4(), leader_id=0)


def deleted(end: int) -> LogTruncatedError:
    return topic_deleted(at_ten(end))


def truncated(end: int) -> LogTruncatedError:
    return log_truncated(at_ten(end), position_epoch=3, leader_epoch=4, end_offset=6)


def trimmed(end: int) -> OffsetOutOfRangeError:
    return out_of_range(at_ten(end), 35, 50)


LOSSES = [
    pytest.param(recreated(40), True, 30, id="recreated, left to a later batch"),
    pytest.param(recreated(40), False, 30, id="recreated, read on"),
    pytest.param(recreated(NO_END), True, 1, id="recreated, of a range without an end"),
    pytest.param(deleted(40), True, 30, id="deleted"),
    pytest.param(deleted(NO_END), True, 1, id="deleted, of a range without an end"),
    pytest.param(deleted(10), True, 1, id="deleted, after its last record"),
    pytest.param(truncated(40), True, 4, id="truncated"),
    pytest.param(trimmed(40), True, 25, id="trimmed"),
]


@pytest.mark.parametrize(("error", "leaves_recreated", "lost"), LOSSES)
def test_tolerated_loss_counts_the_offsets_that_are_left_out(
    counters: Counters, error: LogTruncatedError | OffsetOutOfRangeError, leaves_recreated: bool, lost: int
) -> None:
    resume_or_raise(error, error.offset_range, fail_on_data_loss=False, leaves_recreated=leaves_recreated)
    assert counters.values() == {LOST_OFFSETS: lost}


@pytest.mark.parametrize(("error", "leaves_recreated", "lost"), LOSSES)
def test_loss_that_is_no_querys_counts_nothing(
    counters: Counters, error: LogTruncatedError | OffsetOutOfRangeError, leaves_recreated: bool, lost: int
) -> None:
    resume_or_raise(
        error, error.offset_range, fail_on_data_loss=False, leaves_recreated=leaves_recreated, is_counted=False
    )
    assert counters.values() == {}, lost


@pytest.mark.parametrize(("error", "leaves_recreated", "lost"), LOSSES)
def test_loss_that_is_an_error_counts_nothing(
    counters: Counters, error: LogTruncatedError | OffsetOutOfRangeError, leaves_recreated: bool, lost: int
) -> None:
    with pytest.raises(DataLossError):
        resume_or_raise(error, error.offset_range, fail_on_data_loss=True, leaves_recreated=leaves_recreated)
    assert counters.values() == {}, lost


def test_partition_that_is_gone_before_its_ends_are_known_counts_one(counters: Counters) -> None:
    with pytest.raises(DataLossError):
        leave_deleted(P, fail_on_data_loss=True)
    assert counters.values() == {}
    leave_deleted(P, fail_on_data_loss=False)
    assert counters.values() == {LOST_OFFSETS: 1}
