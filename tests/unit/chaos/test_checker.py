"""The check of the cluster in motion notices what it is there for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaos.alarms import alarms, false_alarms
from chaos.checker import Copied, check_copies, check_totals
from chaos.ledger import Extent, Ledger, Log, Stamp

LOG = Log("orders", 0, 1)
EXTENTS = {LOG: Extent(0, 6)}


def copied(offset: int, **changes: object) -> Copied:
    batch = offset // 3
    plain = Copied(LOG, offset, 1_000 * offset, batch, 0, f"attempt-{batch}", f"row-{offset}", 1.0 * offset + 0.5)
    return replace(plain, **changes)  # type: ignore[arg-type]


GOOD = [copied(offset) for offset in range(6)]


def test_complete_output_has_no_findings() -> None:
    found = check_copies(GOOD, EXTENTS)
    assert (found.records, found.lost, found.duplicated, found.read_twice) == (6, 0, 0, 0)
    assert not found.examples


def test_missing_offset_is_lost_and_named() -> None:
    found = check_copies(GOOD[:2] + GOOD[3:], EXTENTS)
    assert found.lost == 1
    assert "[2]" in found.examples["lost"][0]


@pytest.mark.parametrize("extent", [Extent(3, 6), Extent(0, 6, gone=True)], ids=["deleted before 3", "topic deleted"])
def test_deleted_offsets_are_not_lost(extent: Extent) -> None:
    assert check_copies(GOOD[3:], {LOG: extent}).lost == 0


def test_record_of_a_second_attempt_is_duplicated_and_not_read_twice() -> None:
    found = check_copies([*GOOD, copied(2, attempt="other", row="row-x")], EXTENTS)
    assert (found.duplicated, found.read_twice) == (1, 0)


def test_record_written_twice_in_one_attempt_is_duplicated_and_not_read_twice() -> None:
    found = check_copies([*GOOD, copied(2, written_s=9.0)], EXTENTS)
    assert (found.duplicated, found.read_twice) == (1, 0)


@pytest.mark.parametrize(
    "again",
    [
        copied(2, row="row-x"),
        copied(2, task=1, attempt="other", row="row-x"),
        copied(2, batch_ms=1, attempt="attempt-1", row="row-x"),
    ],
    ids=["in one attempt", "in two tasks", "in two micro-batches"],
)
def test_offset_that_the_source_gave_twice_is_read_twice(again: Copied) -> None:
    found = check_copies([*GOOD, again], EXTENTS)
    assert (found.duplicated, found.read_twice) == (1, 1)


def test_offset_of_another_incarnation_is_another_record() -> None:
    new = Log("orders", 1, 1)
    found = check_copies([*GOOD, copied(0, log=new)], {LOG: Extent(gone=True), new: Extent(0, 2)})
    assert (found.duplicated, found.lost) == (0, 1)


def test_output_record_is_read_back() -> None:
    value = b"orders|1|7|1700000000123|1700000001000|3|ctx@1|row|" + Stamp(LOG, 42).to_value()
    assert Copied.from_value(value, 1_700_000_002_000) == Copied(
        LOG, 7, 1_700_000_000_123, 1_700_000_001_000, 3, "ctx@1", "row", 1_700_000_002.0
    )


def test_output_record_of_another_partition_than_its_stamp_is_refused() -> None:
    with pytest.raises(ValueError, match="was read from orders-2"):
        Copied.from_value(b"orders|2|7|0|0|3|ctx@1|row|" + Stamp(LOG, 42).to_value(), 0)


def test_totals_that_are_too_low_are_lost_and_too_high_are_read_twice() -> None:
    wanted = {(0, 0): 5, (0, 1): 5, (10, 0): 3, (20, 0): 9}
    # The first one is written twice, by two attempts of a task; the last window is open still.
    found = check_totals([(0, 0, 5), (0, 0, 5), (0, 1, 4), (10, 0, 5)], wanted, 20)
    assert (found.wrong_totals, found.lost, found.read_twice) == (2, 1, 2)


def test_totals_of_a_window_that_differ_are_wrong() -> None:
    assert check_totals([(0, 0, 5), (0, 0, 4)], {(0, 0): 5}, 10).wrong_totals == 1


def test_closed_window_that_is_not_there_is_lost() -> None:
    assert check_totals([], {(0, 0): 5, (10, 0): 3}, 10).lost == 5


def test_ledger_knows_what_is_gone_and_what_must_be_there() -> None:
    ledger = Ledger()
    ledger.incarnations.update({"events": 1, "orders": 0})
    old, new, kept = Log("events", 0, 0), Log("events", 1, 0), Log("orders", 0, 0)
    for log, end in ((old, 4), (new, 2), (kept, 3)):
        for offset in range(end):
            ledger.acknowledge(log, offset)
    ledger.deleted_before[kept] = 1
    ends = {("events", 0): 2, ("orders", 0): 2}
    assert ledger.extents(ends) == {old: Extent(0, 4, gone=True), new: Extent(0, 2), kept: Extent(1, 2)}
    assert ledger.vanished(ends) == 1


def test_data_loss_report_is_false_where_nothing_unread_was_deleted_shortly_before() -> None:
    log = (
        "26/11/22 02:00:00 INFO nothing\n"
        "26/11/22 02:00:10 WARN topic events-a is new. The query continues, because 'failOnDataLoss' is false.\n"
        "org.apache.spark.SparkException: [KAFKA_DATA_LOSS.X] Offsets [0, 5) of orders-1 are gone\n"
        "26/11/22 03:00:00 WARN topic events-a is new. The query continues, because 'failOnDataLoss' is false.\n"
    )
    found = alarms(log)
    assert len(found) == 3
    assert found[1].moment == found[0].moment
    lines = [each.line for each in found]
    deleted = found[0].moment - 5.5
    assert false_alarms(found, {"events-a": [deleted], "orders": []}) == lines[1:]
    assert false_alarms(found[:1], {"events-a": [deleted + 60.0]}) == lines[:1]
