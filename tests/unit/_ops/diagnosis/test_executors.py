"""What is made of the executors' answers: differences once for all that have them, and a row for each executor."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._ops.cli.check.lines import Lines, print_executors
from pyspark_kafka._ops.diagnosis import Diagnosis, Finding, FindingStatus, executors
from pyspark_kafka._ops.diagnosis.executors import findings_of, judge_executors

HERE: dict[str, Any] = {
    "python": "3.11.2",
    "executable": "/d/python",
    "packages": {"pyspark-kafka": "1.0", "pyspark": "4.2.0", "pyarrow": "20.0"},
}
REFUSED = {
    "where": "driver",
    "step": "advertised",
    "status": "failed",
    "text": "Broker 2 cannot be reached.",
    "remedy": "Open the way.",
    "facts": {"broker_id": 2, "advertised": "b:2"},
}
REACHED = {**REFUSED, "status": "ok", "text": "Broker 1.", "remedy": "", "facts": {"brokers": ["a:1"]}}
DRIVER = {"address": "d:9", "reason": "", "ahead_ms": 1.4, "error_ms": 0.6}


def executor(host: str, process: int = 1, **changed: Any) -> dict[str, Any]:
    told = {
        **HERE,
        "executable": "/w/python",
        "host": host,
        "process": process,
        "compiled": True,
        "extras": ["json"],
        "driver": DRIVER,
        "findings": [REACHED],
    }
    return {**told, **changed}


def with_version(version: str | None) -> dict[str, Any]:
    return {
        "packages": {**HERE["packages"], "pyspark-kafka": version},
        "compiled": None,
        "driver": None,
        "findings": [],
    }


def problems(*told: dict[str, Any]) -> list[tuple[str, str, FindingStatus, str]]:
    found = findings_of(HERE, told, len(told))
    return [(each.where, each.step, each.status, each.text) for each in found if each.step != "executor"]


def test_executors_without_a_difference_have_a_row_each_and_nothing_else() -> None:
    rows = list(findings_of(HERE, [executor("a"), executor("b"), executor("a", 2)], 3))
    assert [(row.step, row.status, row.where) for row in rows] == [
        ("executor", FindingStatus.OK, "executor a"),
        ("executor", FindingStatus.OK, "executor b"),
        ("executor", FindingStatus.OK, "executor a #2"),
    ]
    facts = rows[0].facts
    assert (facts["compiled"], facts["extras"], facts["clock"]) == (True, ["json"], {"ahead_ms": 1, "error_ms": 1})
    assert (facts["brokers_reached"], facts["driver"]) == (["a:1"], {"address": "d:9", "reached": True})


def test_version_that_differs_on_several_executors_is_one_sentence_with_a_hint() -> None:
    old = with_version("0.9")
    found = list(findings_of(HERE, [executor("a"), executor("b", **old), executor("c", **old)], 3))
    assert found[0].text == "pyspark-kafka is 0.9 there and 1.0 on the driver."
    assert found[0].remedy == "Install pyspark-kafka==1.0 into /w/python on all workers, or 0.9 on the driver."
    assert (found[0].where, found[0].facts["executors"]) == ("2 of 3 executors: b, c", ["b", "c"])
    assert [row.status for row in found[1:]] == [FindingStatus.OK, FindingStatus.FAILED, FindingStatus.FAILED]


def test_broker_that_no_executor_reaches_is_one_finding_and_counted_in_each_row() -> None:
    told = [executor(host, findings=[REACHED, REFUSED]) for host in "ab"]
    assert problems(*told) == [("all 2 executors", "advertised", FindingStatus.FAILED, "Broker 2 cannot be reached.")]
    (_, row, _) = findings_of(HERE, told, 2)
    assert (row.facts["brokers_reached"], row.facts["brokers_not_reached"]) == (["a:1"], ["b:2"])


def test_driver_out_of_reach_and_codec_that_is_not_compiled_are_warnings() -> None:
    unreached = {"address": "d:9", "reason": "TimeoutError: timed out"}
    found = problems(executor("a", driver=unreached, compiled=False))
    assert found == [
        ("executor a", "packages", FindingStatus.WARNING, "The record codec is not compiled there: it is slow."),
        (
            "executor a",
            "driver",
            FindingStatus.WARNING,
            "Continuous queries cannot reach the driver at d:9: TimeoutError: timed out.",
        ),
    ]


def test_clock_is_a_warning_when_it_differs_by_more_than_tokens_allow() -> None:
    assert problems(executor("a", driver={**DRIVER, "ahead_ms": -4_900.0})) == []
    ((_, step, status, text),) = problems(executor("a", driver={**DRIVER, "ahead_ms": -7_200.0}))
    assert (step, status) == ("clock", FindingStatus.WARNING)
    assert text == "The clock is 7.2 s behind the driver's clock."


def test_executors_without_a_task_are_skipped_and_named_by_number() -> None:
    last = list(findings_of(HERE, [executor("a")], 3))[-1]
    assert (last.status, last.text) == (FindingStatus.SKIPPED, "Not judged: 2 of 3 executors got no task.")


def test_time_that_is_over_starts_no_task() -> None:
    (found,) = judge_executors(None, None, Deadline(0), 1_000)
    assert found.status is FindingStatus.SKIPPED


class Cluster:
    """Executors that answer in turn, as `run_tasks` returns them; each round has as many tasks as were asked for."""

    def __init__(self, rounds: list[list[dict[str, Any]]], executors: int, slots: int) -> None:
        self._rounds = iter(rounds)
        self._executors, self._slots = executors, slots
        self.tasks: list[int] = []

    def count_executors(self) -> int:
        return self._executors

    def count(self) -> int:
        return self._slots

    def run_tasks(self, _: Any, prepare: Any, __: Deadline) -> list[str]:
        self.tasks.append(prepare(self)[1])
        return [json.dumps(each) for each in next(self._rounds)]


def judged(monkeypatch: pytest.MonkeyPatch, cluster: Cluster) -> list[Finding]:
    monkeypatch.setattr(executors, "run_tasks", cluster.run_tasks)
    monkeypatch.setattr(executors, "TaskSlots", lambda session: session)
    monkeypatch.setattr(executors, "describe_python", lambda _: HERE)
    monkeypatch.setattr(executors, "_listen", lambda *_: ("d", 9, b"key"))
    return list(judge_executors(None, None, Deadline(60_000), 1_000))


def test_executor_without_a_task_gets_one_of_as_many_as_there_are_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = executor("a"), executor("b")
    cluster = Cluster([[a, a], [a, b, a, b], [a, b]], executors=2, slots=4)
    found = judged(monkeypatch, cluster)
    assert cluster.tasks == [2, 4, 2]
    assert [(row.where, row.status) for row in found] == [
        ("executor a", FindingStatus.OK),
        ("executor b", FindingStatus.OK),
    ]


def test_packages_that_do_not_fit_end_the_check_before_brokers_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster([[executor("a", **with_version("0.9")), executor("b")]], executors=2, slots=2)
    found = judged(monkeypatch, cluster)
    assert found[-1].status is FindingStatus.SKIPPED
    assert found[-1].text == "Not judged further: the packages of 1 executor do not fit."


def test_executors_of_which_nobody_tells_the_number_are_those_that_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster([[executor("a")], [executor("a")]], executors=0, slots=3)
    assert [row.where for row in judged(monkeypatch, cluster)] == ["executor a"]
    assert cluster.tasks == [3, 3]


def shown(*findings: Finding) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=200)
    with Lines(console) as lines:
        for finding in findings:
            lines.show("", finding)
    print_executors(Diagnosis(findings), console)
    return out.getvalue().splitlines()


def test_command_prints_a_table_with_one_row_for_each_executor() -> None:
    heading, first, second = shown(*findings_of(HERE, [executor("a"), executor("b")], 2))
    assert heading.split()[:4] == ["executor", "status", "pyspark-kafka", "compiled"]
    assert first.split() == [
        "a",
        "ok",
        "1.0",
        "yes",
        "3.11.2",
        "4.2.0",
        "20.0",
        "json",
        "1",
        "of",
        "1",
        "+1",
        "ms",
        "yes",
    ]
    assert second.split()[0] == "b"


def test_table_shows_what_an_executor_of_another_version_could_not_tell() -> None:
    row = shown(*findings_of(HERE, [executor("a", **with_version(None), extras=[])], 1))[-1]
    assert row.split() == ["a", "XX", "missing", "?", "3.11.2", "4.2.0", "20.0", "-", "0", "of", "0", "?", "?"]
