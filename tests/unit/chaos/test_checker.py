"""The check of the cluster in motion notices what it is there for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaos.alarms import alarms, false_alarms
from chaos.checker import TaskCopy, check_totals, is_read_twice
from chaos.ledger import Ledger, Stamp
from kit.log_checker import Extent, Findings, Log, check

LOG = Log("orders", 1)


def copied(offset: int, **changes: object) -> TaskCopy:
    batch = offset // 3
    plain = TaskCopy(
        LOG,
        offset,
        read_ms=1_000 * offset,
        batch_ms=batch,
        task=0,
        attempt=f"attempt-{batch}",
        row=f"row-{offset}",
        written_s=1.0 * offset + 0.5,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


GOOD = [copied(offset) for offset in range(6)]


def found_in(output: list[TaskCopy]) -> Findings:
    found = Findings()
    check(found, {LOG: Extent(0, 6)}, output, is_read_twice=is_read_twice)
    return found


def test_record_of_a_second_attempt_is_duplicated_and_not_read_twice() -> None:
    assert found_in([*GOOD, copied(2, attempt="other", row="row-x")]).anomalies() == {"duplicated": 1}


def test_record_written_twice_in_one_attempt_is_duplicated_and_not_read_twice() -> None:
    assert found_in([*GOOD, copied(2, written_s=9.0)]).anomalies() == {"duplicated": 1}


@pytest.mark.parametrize(
    "again",
    [
        copied(2, row="row-x"),
        copied(2, task=1, attempt="other", row="row-x"),
        copied(2, batch_ms=1, attempt="attempt-1", row="row-x"),
    ],
    ids=["in one attempt", "in two tasks", "in two micro-batches"],
)
def test_offset_that_the_source_gave_twice_is_read_twice(again: TaskCopy) -> None:
    found = found_in([*GOOD, again])
    assert (found["duplicated"], found["read twice"]) == (1, 1)


def test_offset_of_another_incarnation_is_another_record() -> None:
    new = replace(LOG, incarnation=1)
    found = Findings()
    check(found, {new: Extent(0, 2)}, [*GOOD, copied(0, log=new)], is_gone=lambda log: log == LOG)
    assert found.anomalies() == {"lost": 1}


def test_output_record_is_read_back() -> None:
    value = b"orders|1|7|1700000000123|1700000001000|3|ctx@1|row|" + Stamp(LOG, 42).to_value()
    assert TaskCopy.from_value(value, 1_700_000_002_000, 2) == TaskCopy(
        LOG,
        7,
        2,
        read_ms=1_700_000_000_123,
        batch_ms=1_700_000_001_000,
        task=3,
        attempt="ctx@1",
        row="row",
        written_s=1_700_000_002.0,
    )


def test_output_record_of_another_partition_than_its_stamp_is_refused() -> None:
    with pytest.raises(ValueError, match="was read from orders-2"):
        TaskCopy.from_value(b"orders|2|7|0|0|3|ctx@1|row|" + Stamp(LOG, 42).to_value(), 0)


def test_totals_that_are_too_low_are_lost_and_too_high_are_read_twice() -> None:
    wanted = {(0, 0): 5, (0, 1): 5, (10, 0): 3, (20, 0): 9}
    # The first one is written twice, by two attempts of a task; the last window is open still.
    found = check_totals([(0, 0, 5), (0, 0, 5), (0, 1, 4), (10, 0, 5)], wanted, 20)
    assert found.anomalies() == {"wrong totals": 2, "lost": 1, "read twice": 2}


def test_totals_of_a_window_that_differ_are_wrong() -> None:
    assert check_totals([(0, 0, 5), (0, 0, 4)], {(0, 0): 5}, 10)["wrong totals"] == 1


def test_closed_window_that_is_not_there_is_lost() -> None:
    assert check_totals([], {(0, 0): 5, (10, 0): 3}, 10)["lost"] == 5


def test_ledger_knows_what_is_gone_and_what_must_be_there() -> None:
    ledger = Ledger()
    ledger.incarnations.update({"events": 1, "orders": 0})
    old, new, kept = Log("events", 0, 0), Log("events", 0, 1), Log("orders", 0)
    for log, end in ((old, 4), (new, 2), (kept, 3)):
        for offset in range(end):
            ledger.acknowledge(log, offset)
    ledger.deleted_before[kept] = 1
    ends = {("events", 0): 2, ("orders", 0): 2}
    assert ledger.extents(ends) == {new: Extent(0, 2), kept: Extent(1, 2)}
    assert [ledger.is_gone(log) for log in (old, new, kept, Log("others", 0))] == [True, False, False, False]
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
