"""Bad records of a task: counted, judged, logged."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kit.fakes.clock import Clock
from kit.texts import said
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._connector.source.executor.bad_records import BadRecord, BadRecords
from pyspark_kafka._typed.codecs.values import Reason
from pyspark_kafka.errors import RecordError

PLACE = TopicPartition("orders", 3)
FORMATS = {"value": "avro", "key": "json"}


def bad(*rows: int, reason: str = "DECODE_FAILED") -> list[BadRecord]:
    return [BadRecord(row, "value", reason, "it ends too early", "7") for row in rows]


def take(records: BadRecords, rows: int, found: Sequence[BadRecord], start: int = 0) -> None:
    records.count_records(PLACE, rows, found, lambda row: start + row)


def test_the_ratio_is_judged_from_a_hundred_records_on() -> None:
    records = BadRecords("PERMISSIVE", 0.1, FORMATS)
    take(records, 99, bad(*range(50)))
    with pytest.raises(RecordError) as caught:
        take(records, 1, bad(0, reason="TYPE_MISMATCH"), start=99)
    assert said(caught.value) == (
        "[TOO_MANY_BAD_RECORDS] 51 of 100 records that this task has read are bad, a ratio of 0.51; option "
        "'maxCorruptRatio' allows 0.1. The most frequent reason is DECODE_FAILED, 50 times. The first: "
        + ", ".join(
            f"orders-3 offset {row} (value with schema 7, DECODE_FAILED: it ends too early)" for row in range(5)
        )
        + ", and 46 more. The task fails, and nothing of the batch is committed. Hint: If most records are bad, check "
        "the options of format, wire format and schema; if they are correct, raise maxCorruptRatio."
    )
    assert caught.value.parameters == {"bad": "51", "records": "100", "max_ratio": "0.1", "reason": "DECODE_FAILED"}


def test_the_ratio_is_that_of_all_records_of_the_task() -> None:
    records = BadRecords("PERMISSIVE", 0.1, FORMATS)
    take(records, 1_000, [])
    take(records, 100, bad(*range(100)))
    with pytest.raises(RecordError, match="120 of 1,120 records"):
        take(records, 20, bad(*range(20)))


@pytest.mark.parametrize("reason", Reason)
def test_hint_names_the_options_that_the_reason_is_about(reason: Reason) -> None:
    with pytest.raises(RecordError) as caught:
        take(BadRecords("FAILFAST", 1.0, FORMATS), 1, bad(0, reason=reason.value))
    named = {
        Reason.INCOMPLETE_HEADER: "'valueFraming'",
        Reason.INVALID_MAGIC_BYTE: "'valueFraming'",
        Reason.SCHEMA_ID_NOT_FOUND: "'schema.registry.url'",
        Reason.RESOLUTION_FAILED: "'valueSchemaVersion'",
    }
    assert named.get(reason, "'valueSchema'") in caught.value.hint
    assert "{" not in caught.value.hint
    assert "Set mode to PERMISSIVE" in caught.value.hint


@pytest.mark.parametrize(("ratio", "count"), [(1.0, 10), (0.5, 5), (0.0, 0)])
def test_a_ratio_that_is_reached_is_allowed(ratio: float, count: int) -> None:
    records = BadRecords("PERMISSIVE", ratio, FORMATS)
    take(records, 10, bad(*range(count)))
    records.judge_ratio()


def test_a_read_of_nothing_is_good() -> None:
    BadRecords("PERMISSIVE", 0.0, FORMATS).judge_ratio()


def test_records_that_are_left_out_are_logged_once_for_a_task(caplog: pytest.LogCaptureFixture) -> None:
    records = BadRecords("DROPMALFORMED", 1.0, FORMATS, clock=Clock())
    take(records, 100, bad(3, 5), start=1_000)
    take(records, 100, bad(*range(10)), start=2_000)
    assert caplog.messages == []
    records.log()
    records.log()
    (line,) = caplog.messages
    assert line == (
        "12 of 200 records that this task has read are bad and were left out, because 'mode' is DROPMALFORMED; "
        "12 of them since the last such line: "
        + ", ".join(
            f"orders-3 offset {offset} (value with schema 7, DECODE_FAILED: it ends too early)"
            for offset in (1_003, 1_005, 2_000, 2_001, 2_002)
        )
        + ", and 7 more."
    )


def test_a_task_that_runs_for_long_logs_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    records = BadRecords("DROPMALFORMED", 1.0, FORMATS, clock=clock)
    for _ in range(130):
        take(records, 10, bad(1))
        clock.now += 1.0
    assert len(caplog.messages) == 2
    records.log()
    assert [line.partition(" of ")[0] for line in caplog.messages] == ["61", "121", "130"]


def test_records_that_are_kept_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    records = BadRecords("PERMISSIVE", 1.0, FORMATS)
    take(records, 100, bad(1))
    records.log()
    assert caplog.messages == []
