"""A report on a terminal, in a pipe, and as JSON."""

from __future__ import annotations

import io
import json
from dataclasses import replace

from rich.console import Console

from pyspark_kafka._ops.cli.lag.tables import FEW_PARTITIONS, print_report, to_json, to_lines, to_table
from pyspark_kafka._ops.operations.lag.values import LagReport, LagState, PartitionLag
from pyspark_kafka.checkpoint.continuous_files import WaitingStep


def report(count: int, **fields: object) -> LagReport:
    partitions = tuple(
        PartitionLag("orders", number, LagState.KNOWN, 0, 0, 10, number, 0, **fields)  # type: ignore[arg-type]
        for number in range(count)
    )
    return LagReport("consumer group 'g'", 0, 1_767_225_600_000, partitions)


def printed(found: LagReport, *, terminal: bool, every: bool = False, max_rows: int | None = None) -> str:
    out = io.StringIO()
    print_report(
        Console(file=out, force_terminal=terminal, width=160, color_system=None), found, every=every, max_rows=max_rows
    )
    return out.getvalue()


def test_pipe_has_a_line_for_each_topic_then_few_partitions_the_worst_first() -> None:
    assert to_lines(report(2), every=False) == [
        "orders, 2 partitions: 1 records behind",
        "  orders-1: 1 records behind",
        "  orders-0: nothing behind",
    ]


def test_partitions_are_left_out_if_they_are_many_unless_asked_for() -> None:
    many = report(FEW_PARTITIONS + 1)
    assert len(to_lines(many, every=False)) == 1
    assert len(to_lines(many, every=True)) == FEW_PARTITIONS + 2


def test_heading_says_whose_positions_they_are_and_of_when() -> None:
    text = printed(report(1), terminal=False)
    assert text.startswith("Lag of consumer group 'g': 1 partition, positions of 2026-01-01T00:00:00")


def test_reasons_are_told_once_with_their_number() -> None:
    lines = to_lines(report(3, missing=("how many bytes are behind: no right",)), every=False)
    assert lines[-1] == "Not known of 3 partitions: how many bytes are behind: no right"


def test_partition_that_holds_windows_open_is_named() -> None:
    waiting = WaitingStep(1, "stateStoreSave", "orders-1\x1b", 1_767_225_620_000, 1_767_225_660_000)
    found = replace(report(1), waiting=(waiting,))
    expected = (
        "Step 1 (stateStoreSave) waits for orders-1\\x1b: its watermark is 2026-01-01T00:00:20.000Z, and its first "
        "timer 2026-01-01T00:01:00.000Z."
    )
    assert to_lines(found, every=False)[-1] == expected
    assert expected in printed(found, terminal=True)
    assert json.loads(to_json(found, []))["waiting"][0]["key_group"] == waiting.key_group


def test_terminal_has_a_table_with_bars_and_no_more_rows_than_fit() -> None:
    text = printed(report(4, headroom_s=3_600.0), terminal=True, max_rows=2)
    assert "headroom" in text
    assert "█" in text
    assert "1 h" in text
    assert "orders-3" in text
    assert "orders-0" not in text
    assert "… and 2 more" in text


def test_terminal_has_the_sum_of_a_topic_below_its_partitions() -> None:
    assert "orders, 4 partitions: 6 records behind" in printed(report(4), terminal=True)
    assert "orders, " not in printed(report(1), terminal=True)


def test_narrow_terminal_leaves_out_rates_and_cuts_no_number() -> None:
    found = report(3, produced_per_s=1_234.0, consumed_per_s=1_234.0, bytes_behind=500_000, seconds_behind=90_061.0)
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80, color_system=None)
    console.print(to_table(found, every=True, history={"orders-2": [1.0] * 20}, width=80))
    (head,) = (line for line in out.getvalue().splitlines() if line.startswith("partition"))
    assert "written" not in head
    (row,) = (line for line in out.getvalue().splitlines() if line.startswith("orders-2"))
    assert row.split()[2:] == ["2", "~488.3", "KiB", "1", "d", "1", "h", "?"]
    assert "…" not in row


def test_fault_of_a_partition_is_beside_its_records() -> None:
    lost = LagReport("g", 0, None, (PartitionLag("orders", 0, LagState.LOST, 0, 5, 9, 4, 5),))
    assert "4 (lost)" in printed(lost, terminal=True)


def test_terminal_sums_many_partitions_by_topic() -> None:
    text = printed(report(FEW_PARTITIONS + 1), terminal=True)
    assert "orders-3" not in text
    assert f"{sum(range(FEW_PARTITIONS + 1))}" in text


def test_json_has_the_findings_as_well() -> None:
    told = json.loads(to_json(report(1), ["A finding."]))
    assert told["findings"] == ["A finding."]
    assert told["partitions"][0]["topic"] == "orders"


def test_title_on_a_terminal_is_no_markup() -> None:
    found = LagReport("group '[/x][red]\x1b[2J'", 0, None, ())
    assert "Lag of group '[/x][red]\\x1b[2J'" in printed(found, terminal=True)
