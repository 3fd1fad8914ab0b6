"""The states of a cursor: which events change them, and what each response means for one range."""

from __future__ import annotations

import itertools
import math
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from kit.record_batches import plain_batch
from pyspark_kafka._base.model import NO_END, IsolationLevel, OffsetRange, TopicPartition
from pyspark_kafka._client.client.fetch.cursor import TRANSITIONS, Cursor, CursorState, Outcome
from pyspark_kafka._client.client.fetch.errors import LogTruncatedError, OffsetOutOfRangeError
from pyspark_kafka._client.client.fetch.request import RecordSizes
from pyspark_kafka._client.client.fetch.response import FetchPartitionResponse
from pyspark_kafka._client.options import ConnectionOptions, FetchOptions
from pyspark_kafka.errors import CorruptRecordsError, TransportError

LOST = TransportError("lost", condition="CONNECTION_LOST", retriable=True)


def cursor_of(start: int = 0, end: int = 30, **options: Any) -> Cursor:
    connection = ConnectionOptions((("simulated", 9092),), **options)
    return Cursor(OffsetRange(TopicPartition("t", 0), start, end), FetchOptions(), connection, RecordSizes())


def response_of(records: bytes = b"", *, high_watermark: int = 100, replica: int = -1) -> FetchPartitionResponse:
    return FetchPartitionResponse(
        "t", None, 0, 0, high_watermark, high_watermark, 0, (), replica, -1, -1, memoryview(records)
    )


def send(cursor: Cursor, leader_epoch: int = 0) -> Cursor:
    cursor.sent(cursor.next_request(leader_epoch, None), "broker:9092")
    return cursor


# How a cursor gets into each state.
INTO: dict[CursorState, Callable[[Cursor], object]] = {
    CursorState.READY: lambda cursor: cursor.release(),
    CursorState.IN_FLIGHT: send,
    CursorState.PAUSED: lambda cursor: cursor.pause_until(5.0),
    CursorState.CHECKING: lambda cursor: cursor.check(),
    CursorState.FAILED: lambda cursor: cursor.fail(LOST),
    CursorState.DONE: lambda cursor: cursor.finish(),
}


@pytest.mark.parametrize(("before", "after"), [*itertools.product(CursorState, CursorState)])
def test_cursor_changes_its_state_as_the_table_says_and_no_other_way(before: CursorState, after: CursorState) -> None:
    cursor = cursor_of()
    INTO[before](cursor)
    assert cursor.state is before
    if after in TRANSITIONS[before]:
        INTO[after](cursor)
        assert cursor.state is after
    else:
        with pytest.raises(RuntimeError, match=f"cannot become {after.value}"):
            INTO[after](cursor)
        assert cursor.state is before


def test_cursor_of_an_empty_range_is_done() -> None:
    assert cursor_of(7, 7).state is CursorState.DONE


def test_cursor_sends_nothing_before_its_pause_is_over() -> None:
    cursor = cursor_of()
    cursor.pause_until(5.0)
    assert not cursor.wake(4.9)
    assert cursor.wake_at == 5.0
    assert cursor.wake(5.0)
    assert cursor.state is CursorState.READY


@pytest.mark.parametrize("state", [CursorState.READY, CursorState.PAUSED])
def test_cursor_that_is_held_sends_nothing_and_wakes_nobody(state: CursorState) -> None:
    cursor = cursor_of()
    INTO[state](cursor)
    cursor.hold(held=True)
    assert not cursor.wake(100.0)
    assert cursor.wake_at == math.inf
    cursor.hold(held=False)
    assert cursor.wake(100.0)


def test_cursor_moves_to_the_end_of_the_last_whole_batch_and_is_done_at_the_end_of_its_range() -> None:
    cursor = send(cursor_of(3, 12))
    outcome, fetched = cursor.take_response(response_of(plain_batch(0, 10) + plain_batch(10, 5)[:-1]), 1.0, first=True)
    assert outcome is Outcome.FED
    assert fetched is not None
    assert (fetched.start_offset, fetched.scanned_offset, cursor.position) == (3, 10, 10)
    assert cursor.state is CursorState.READY
    assert cursor.confirm(10) is None
    outcome, fetched = send(cursor).take_response(response_of(plain_batch(10, 5)), 2.0, first=True)
    assert fetched is not None
    assert (fetched.start_offset, cursor.position, cursor.state) == (10, 15, CursorState.DONE)
    # Beyond the end of the range it does not matter how far decoding came.
    assert cursor.confirm(12) is None


@pytest.mark.parametrize(
    ("response", "first", "outcome"),
    [
        (response_of(high_watermark=100), True, Outcome.STARVED),
        (response_of(high_watermark=7), True, Outcome.EMPTY),
        (response_of(plain_batch(0, 10)[:-1]), False, Outcome.STARVED),
        (response_of(plain_batch(0, 5)), True, Outcome.BEHIND),
        (response_of(replica=2), True, Outcome.REDIRECTED),
    ],
)
def test_cursor_stays_where_it_is_after_a_response_without_records_for_it(
    response: FetchPartitionResponse, outcome: Outcome, *, first: bool
) -> None:
    cursor = send(cursor_of(7, client_rack="r"))
    assert cursor.take_response(response, 1.0, first=first) == (outcome, None)
    assert (cursor.position, cursor.state) == (7, CursorState.READY)


def test_bytes_without_a_whole_batch_are_returned_for_the_decoder_to_refuse() -> None:
    cursor = send(cursor_of())
    outcome, fetched = cursor.take_response(response_of(plain_batch(0, 10)[:-1]), 1.0, first=True)
    assert outcome is Outcome.FED
    assert fetched is not None
    assert fetched.scanned_offset == cursor.position == 0


def test_position_that_decoding_does_not_confirm_is_an_error_once() -> None:
    cursor = send(cursor_of())
    cursor.take_response(response_of(plain_batch(0, 10)), 1.0, first=True)
    error = cursor.confirm(9)
    assert isinstance(error, CorruptRecordsError)
    assert "end at 10 by their headers, but at 9 by their verified content" in str(error)
    assert cursor.confirm(9) is None


def test_log_that_ends_at_the_position_is_checked_later_if_the_range_has_an_end() -> None:
    for end, check_at in ((30, 3.0), (NO_END, math.inf)):
        cursor = send(cursor_of(7, end))
        cursor.take_response(response_of(high_watermark=7), 1.0, first=True)
        assert cursor.log_check_at == check_at


def test_log_counts_as_ended_after_several_looks() -> None:
    cursor = cursor_of(7)
    errors = [cursor.compare_log(0, 7, float(now), None) for now in range(5)]
    assert errors[:4] == [None] * 4
    assert isinstance(errors[4], OffsetOutOfRangeError)
    # A log that has the position begins the count again.
    cursor = cursor_of(7)
    ends = [7, 7, 7, 7, 8, 7, 7, 7, 7]
    assert [cursor.compare_log(0, end, float(now), None) for now, end in enumerate(ends)] == [None] * 9


def test_range_without_an_end_waits_at_the_end_of_its_log_and_not_beyond_it() -> None:
    cursor = cursor_of(7, NO_END)
    for now in range(20):
        # The leader has just refused the position, because it lags.
        assert cursor.compare_log(0, 7, float(now), LOST) is None
        assert cursor.log_check_at == math.inf
    # It began there, too: everything before it was read.
    assert cursor.compare_log(7, 7, 20.0, LOST) is None
    assert isinstance(cursor.compare_log(8, 9, 21.0, LOST), OffsetOutOfRangeError)
    cursor = cursor_of(7, NO_END)
    errors = [cursor.compare_log(0, 6, float(now), LOST) for now in range(5)]
    assert errors[:4] == [None] * 4
    assert isinstance(errors[4], OffsetOutOfRangeError)


def test_log_that_begins_behind_the_position_is_an_error_at_once() -> None:
    error = cursor_of(7).compare_log(9, 50, 0.0, LOST)
    assert isinstance(error, OffsetOutOfRangeError)
    assert (error.requested_offset, error.log_start_offset, error.log_end_offset) == (7, 9, 50)
    assert error.__cause__ is LOST


@pytest.mark.parametrize(("end_offset", "truncated"), [(-1, False), (10, False), (11, False), (9, True), (0, True)])
def test_epoch_of_the_position_is_asked_about_when_another_leader_has_taken_over(
    end_offset: int, *, truncated: bool
) -> None:
    cursor = cursor_of()
    assert cursor.unconfirmed_epoch(4) is None
    send(cursor, 3).take_response(response_of(plain_batch(0, 10)), 1.0, first=True)
    assert cursor.unconfirmed_epoch(3) is None
    epoch = cursor.unconfirmed_epoch(4)
    assert epoch is not None
    cursor.check()
    error = cursor.confirm_epoch(4, end_offset)
    assert isinstance(error, LogTruncatedError) == truncated
    assert (cursor.unconfirmed_epoch(4) is None) != truncated


def test_cursor_resumes_in_the_recreated_topic() -> None:
    former, recreated = uuid.uuid4(), uuid.uuid4()
    cursor = cursor_of()
    assert cursor.topic.accepts(former)
    assert not cursor.topic.accepts(recreated)
    cursor.topic.note_other(recreated)
    cursor.fail(LOST)
    cursor.resume(12)
    assert cursor.topic.accepts(recreated)
    assert (cursor.position, cursor.state, cursor.error) == (12, CursorState.READY, None)


@pytest.mark.parametrize(
    ("isolation", "ends", "expected"),
    [
        (IsolationLevel.READ_UNCOMMITTED, (0, 90, 70), 90),
        (IsolationLevel.READ_COMMITTED, (0, 90, 70), 70),
        # A broker that does not say.
        (IsolationLevel.READ_COMMITTED, (0, 90, -1), 90),
        (IsolationLevel.READ_UNCOMMITTED, (0, -1, -1), None),
    ],
)
def test_cursor_knows_where_the_visible_log_ends(
    isolation: IsolationLevel, ends: tuple[int, int, int], expected: int | None
) -> None:
    connection = ConnectionOptions((("simulated", 9092),))
    fetch = FetchOptions(isolation_level=isolation)
    cursor = Cursor(OffsetRange(TopicPartition("t", 0), 0, NO_END), fetch, connection, RecordSizes())
    assert cursor.known_end is None
    cursor.log = ends
    assert cursor.known_end == expected


def test_end_that_a_response_names_is_known_also_without_records() -> None:
    cursor = send(cursor_of(7, NO_END))
    cursor.take_response(response_of(high_watermark=12), 0.0, first=True)
    assert cursor.known_end == 12
