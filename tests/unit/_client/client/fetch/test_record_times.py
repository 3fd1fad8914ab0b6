"""The time of the record at a position, out of the bytes that a broker returns for it."""

from __future__ import annotations

import pytest

from kit.record_batches import LOG_APPEND, batch, control_batch, record
from pyspark_kafka._client.client.fetch.record_times import find_time
from pyspark_kafka.errors import CorruptRecordsError

# Three records, 10 s apart.
SPREAD = batch(
    [record(delta, time_delta=10_000 * delta) for delta in range(3)], base_offset=5, base_time=50_000, max_time=70_000
)


@pytest.mark.parametrize(("position", "time_ms"), [(3, 50_000), (5, 50_000), (6, 60_000), (7, 70_000)])
def test_time_is_that_of_the_record_at_the_position_or_after_it(position: int, time_ms: int) -> None:
    assert find_time(memoryview(SPREAD), position) == time_ms


def test_time_of_records_within_a_second_is_that_of_the_first() -> None:
    close = batch([record(0), record(1, time_delta=900)], base_time=1_000, max_time=1_900)
    assert find_time(memoryview(close), 1) == 1_000


def test_time_of_appending_counts_for_all_records_of_a_batch() -> None:
    appended = batch([record(0), record(1)], attributes=LOG_APPEND, base_time=1_000, max_time=90_000)
    assert find_time(memoryview(appended), 0) == 90_000


def test_time_is_not_known_if_the_batch_is_cut_off_or_absent() -> None:
    assert find_time(memoryview(SPREAD[:-1]), 5) is None
    assert find_time(memoryview(b""), 5) is None
    assert find_time(memoryview(SPREAD), 8) is None


def test_time_is_found_behind_a_batch_before_the_position() -> None:
    assert find_time(memoryview(SPREAD + batch([record(0)], base_offset=8, base_time=9, max_time=9)), 8) == 9


def test_time_of_a_control_record_is_that_of_its_batch() -> None:
    assert find_time(memoryview(control_batch(4, producer_id=1)), 4) == 0


def test_bytes_that_are_no_batch_are_refused() -> None:
    with pytest.raises(CorruptRecordsError):
        find_time(memoryview(b"\x00" * 16 + b"\x07" + b"\x00" * 100), 0)
