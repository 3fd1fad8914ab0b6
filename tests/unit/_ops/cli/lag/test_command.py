"""The command looks once, and again where a headroom by size is asked for; what is found is shown without escapes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from kit.programs.cli import invoke
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._connector.planning.lag import Log
from pyspark_kafka._connector.planning.retention import RetentionPolicy
from pyspark_kafka._ops.operations.lag import api
from pyspark_kafka._ops.operations.lag.compute import partition_lag, with_rates
from pyspark_kafka._ops.operations.lag.values import LagReport, LagState, PartitionLag

COMMAND = ("lag", "--bootstrap-servers", "localhost:9092", "--group", "g", "--interval", "0.1")
A = TopicPartition("orders", 0)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[LagReport]:
    """Stands for the brokers: a log of 2,000 of 10,000 bytes that grows by 1,000 bytes a second, of old records."""
    found: list[LagReport] = []

    def lag(*_: Any, before: LagReport | None, **__: Any) -> LagReport:
        size = 2_000 + 1_000 * len(found)
        log = Log(0, size // 10, size=size, policy=RetentionPolicy(retention_bytes=10_000), position_time_ms=-1)
        now_ms = 1_000 * len(found)
        report = LagReport("group 'g'", now_ms, None, (partition_lag(A, 0, log, now_ms=now_ms),))
        found.append(report if before is None else with_rates(report, before))
        return found[-1]

    monkeypatch.setattr(api, "lag", lag)
    return found


def test_headroom_that_is_asked_for_is_looked_for_twice_where_size_counts(looks: list[LagReport]) -> None:
    result = invoke(*COMMAND, "--json", "--min-headroom", "1h")
    assert result.exit_code == 1, result.output
    assert json.loads(result.stdout)["partitions"][0]["headroom_s"] == 7.0
    assert len(looks) == 2
    assert invoke(*COMMAND, "--min-headroom", "5").exit_code == 0


def test_lag_without_a_threshold_of_headroom_looks_once(looks: list[LagReport]) -> None:
    result = invoke(*COMMAND)
    assert result.exit_code == 0, result.output
    assert len(looks) == 1
    assert "it needs the rate of writing between two looks" in result.stdout


def test_short_options_and_the_name_of_kafkas_tools_are_the_same(looks: list[LagReport]) -> None:
    for servers in ("-b", "--bootstrap-server"):
        assert invoke("lag", servers, "localhost:9092", "-g", "g").exit_code == 0
    assert len(looks) == 2
    assert invoke("lag", "-h").stdout == invoke("lag", "--help").stdout


@pytest.mark.parametrize(("flags", "times"), [((), True), (("--no-times",), False)])
def test_records_are_read_for_their_times_unless_the_user_refuses(
    flags: tuple[str, ...], times: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []

    def lag(*_: Any, times: bool, **__: Any) -> LagReport:
        seen.append(times)
        return LagReport("group 'g'", 0, None, ())

    monkeypatch.setattr(api, "lag", lag)
    assert invoke(*COMMAND, *flags).exit_code == 0
    assert seen == [times]


@pytest.fixture
def show(monkeypatch: pytest.MonkeyPatch) -> Callable[[LagReport], None]:
    def shown(report: LagReport) -> None:
        monkeypatch.setattr(api, "lag", lambda *_, **__: report)

    return shown


def test_names_with_control_characters_reach_the_terminal_as_escapes(show: Callable[[LagReport], None]) -> None:
    topic = "\x1b]52;c;aGk=\x07\n"
    behind = PartitionLag(topic, 0, LagState.KNOWN, 0, 0, 9, 9, 0, missing=(f"{topic} is away",))
    gone = PartitionLag(topic, 1, LagState.GONE)
    show(LagReport(f"group {topic}", 0, None, (behind, gone), (topic,)))
    result = invoke(*COMMAND, "--max-records", "1")
    assert result.exit_code == 1, result.output
    assert "More than 1 record behind: \\x1b]52;c;aGk=" in result.stdout
    assert all(each.isprintable() or each == "\n" for each in result.stdout + result.stderr)
    assert "\n\n" not in result.stdout
