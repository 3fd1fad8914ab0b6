"""The abort filter: what a reader of committed records must not see."""

from __future__ import annotations

import pytest

from kit.record_batches import (
    COMMIT,
    TRANSACTIONAL,
    batch,
    control_batch,
    offsets,
    plain_batch,
)
from pyspark_kafka.records import iter_decode


def in_transaction(offset: int, producer_id: int, count: int = 2) -> bytes:
    return plain_batch(offset, count, producer_id=producer_id, attributes=TRANSACTIONAL)


def committed(log: bytes, aborted: list[tuple[int, int]], start_offset: int = 0) -> list[int]:
    return offsets(log, start_offset, isolation_level="read_committed", aborted_transactions=aborted)


def test_aborted_records_are_hidden_and_committed_ones_are_not() -> None:
    log = in_transaction(0, 1) + in_transaction(2, 2) + control_batch(4, 1) + control_batch(5, 2, COMMIT)
    assert committed(log, [(1, 0)]) == [2, 3]


def test_read_uncommitted_sees_aborted_records() -> None:
    log = in_transaction(0, 1) + control_batch(2, 1)
    assert offsets(log, aborted_transactions=[(1, 0)]) == [0, 1]


def test_the_list_may_be_unsorted_and_hold_duplicates() -> None:
    log = in_transaction(0, 1) + control_batch(2, 1) + in_transaction(3, 1) + control_batch(5, 1, COMMIT)
    log += in_transaction(6, 1) + control_batch(8, 1) + plain_batch(9, 1)
    assert committed(log, [(1, 6), (1, 0), (1, 6), (1, 0)]) == [3, 4, 9]


def test_entries_beyond_the_fetched_bytes_hide_nothing() -> None:
    assert committed(in_transaction(0, 1) + control_batch(2, 1, COMMIT), [(1, 50), (2, 60)]) == [0, 1]


@pytest.mark.parametrize(("first", "hidden"), [(0, True), (2, True), (3, True), (4, False)])
def test_a_transaction_is_active_from_the_batch_that_reaches_its_first_offset(first: int, hidden: bool) -> None:
    log = in_transaction(0, 1, 4) + in_transaction(4, 1) + control_batch(6, 1)
    assert committed(log, [(1, first)]) == ([] if hidden else [0, 1, 2, 3])


def test_a_marker_of_an_empty_transaction_without_an_entry_changes_nothing() -> None:
    log = control_batch(0, 1) + in_transaction(1, 1) + control_batch(3, 1, COMMIT)
    assert committed(log, []) == [1, 2]


def test_a_marker_without_an_entry_does_not_end_another_transaction() -> None:
    log = in_transaction(0, 1) + control_batch(2, 2) + in_transaction(3, 1) + control_batch(5, 1)
    assert committed(log, [(1, 0)]) == []


def test_an_entry_without_records_ends_with_its_marker() -> None:
    log = control_batch(0, 1) + in_transaction(1, 1) + control_batch(3, 1, COMMIT)
    assert committed(log, [(1, 0)]) == [1, 2]


def test_records_of_a_producer_outside_transactions_are_never_hidden() -> None:
    log = in_transaction(0, 1) + plain_batch(2, 2, producer_id=1) + control_batch(4, 1)
    assert committed(log, [(1, 0)]) == [2, 3]


def test_markers_below_the_position_count() -> None:
    log = in_transaction(0, 1) + control_batch(2, 1) + in_transaction(3, 1) + control_batch(5, 1, COMMIT)
    assert committed(log, [(1, 0)], start_offset=3) == [3, 4]


def test_markers_may_carry_a_higher_epoch_than_their_records() -> None:
    log = in_transaction(0, 1) + control_batch(2, 1, epoch=7) + in_transaction(3, 1)
    assert committed(log, [(1, 0)]) == [3, 4]


def test_a_commit_marker_does_not_end_an_aborted_transaction() -> None:
    log = control_batch(0, 1, COMMIT) + in_transaction(1, 1) + control_batch(3, 1)
    assert committed(log, [(1, 0)]) == []


def test_a_hidden_batch_is_not_decompressed_but_advances() -> None:
    hidden = batch(b"not lz4", count=4, producer_id=1, attributes=TRANSACTIONAL | 3, last_delta=9)
    arguments = {"start_offset": 0, "isolation_level": "read_committed", "aborted_transactions": [(1, 0)]}
    (piece,) = iter_decode(hidden, **arguments)  # type: ignore[arg-type]
    assert (piece.batch.num_rows, piece.next_offset) == (0, 10)


def test_an_unknown_isolation_level_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="isolation level 'committed'"):
        iter_decode(b"", start_offset=0, isolation_level="committed")
