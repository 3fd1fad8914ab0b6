"""All executors of a session: a task on each, what differs between them, and a row for each.

Spark promises no task for an executor. There are as many tasks as executors, which Spark deals out in turn, and then as
many as slots while executors are missing.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from pyspark_kafka._base.compiled import HINT
from pyspark_kafka._ops.diagnosis.driver_port import DriverPort
from pyspark_kafka._ops.diagnosis.findings import Finding, FindingStatus
from pyspark_kafka._ops.diagnosis.on_executor import Errand, errand_probe, executor_probe
from pyspark_kafka._ops.diagnosis.steps.brokers import MAX_SKEW_MS
from pyspark_kafka._ops.diagnosis.steps.packages import PACKAGES, compare_packages, describe_python
from pyspark_kafka._ops.diagnosis.worker import RETURN_MS, run_tasks
from pyspark_kafka._ops.operations.text import counted
from pyspark_kafka.continuous.channel.driver_side import open_listener
from pyspark_kafka.continuous.placement.sessions import address_of_driver
from pyspark_kafka.continuous.placement.slots import TaskSlots
from pyspark_kafka.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka._ops.operations.settings import Settings

_ROUNDS = 4
_SHOWN = ("pyspark-kafka", "pyspark", "pyarrow")
_BAD = (FindingStatus.FAILED, FindingStatus.SKIPPED, FindingStatus.WARNING)
# More names than these are a number in a heading.
_NAMED = 4


def judge_executors(
    spark: Any,
    settings: Settings | None,
    deadline: Deadline,
    step_ms: float,
    coordinator: tuple[str, int] = ("", 0),
) -> Iterator[Finding]:
    """Run a task on each executor, and yield what differs from the driver or fails, and then a finding for each.

    Runs on: driver; blocks, at most until the deadline.

    Args:
        spark: a session, classic or Connect, or a function that returns one.
        settings: the options; None if they are not valid: then no request is sent.
        deadline: of the whole check.
        step_ms: how long one step on an executor may take.
        coordinator: host and port where the driver of a continuous query listens; empty and 0 for its defaults.
    """
    if deadline.expired:
        yield _of_cluster(FindingStatus.SKIPPED, "Not judged: the time for the whole check is over (--timeout).")
        return
    here = describe_python(PACKAGES)
    packages = _gather(spark, lambda _: executor_probe(), deadline)
    if isinstance(packages, Finding):
        yield packages
        return
    told, executors = packages
    unfit = sum(any(status is FindingStatus.FAILED for status, _, _ in compare_packages(here, each)) for each in told)
    if unfit:
        yield from findings_of(here, told, executors)
        yield _of_cluster(
            FindingStatus.SKIPPED, f"Not judged further: the packages of {counted(unfit, 'executor')} do not fit."
        )
        return
    with ExitStack() as closing:
        driver: list[tuple[str, int, bytes] | ConnectorError] = []

        def probe(session: Any) -> Callable[[object], str]:
            if not driver:
                driver.append(_listen(session, coordinator, closing))
            left_ms = max(1.0, deadline.remaining_s() * 1000 - RETURN_MS)
            reached = driver[0] if isinstance(driver[0], tuple) else None
            return errand_probe(Errand(settings, left_ms, min(step_ms, left_ms), reached))

        looked = _gather(spark, probe, deadline)
    if driver and isinstance(driver[0], ConnectorError):
        yield Finding("driver", FindingStatus.WARNING, driver[0].message, driver[0].hint)
    if isinstance(looked, Finding):
        yield looked
        return
    yield from findings_of(here, *looked)


def _gather(
    spark: Any, probe: Callable[[Any], Callable[[object], str]], deadline: Deadline
) -> tuple[list[dict[str, Any]], int] | Finding:
    """Run a function on each executor; return what each told, and how many executors there are.

    Returns:
        The number is 0 if nobody tells it. A finding if the tasks of the first round have failed.
    """
    found: dict[tuple[str, int], dict[str, Any]] = {}
    executors = 0

    def prepare(session: Any) -> tuple[Callable[[object], str], int]:
        nonlocal executors
        deadline.check("The check")
        slots = TaskSlots(session)
        executors = slots.count_executors()
        return probe(session), max(1, executors if executors and not found else slots.count())

    for _ in range(_ROUNDS):
        told = run_tasks(spark, prepare, deadline)
        if isinstance(told, Finding):
            if not found:
                return told
            break
        for text in told:
            each = json.loads(text)
            found.setdefault((each["host"], each["process"]), each)
        if len(found) >= executors or deadline.expired:
            break
    return list(found.values()), executors


def findings_of(here: Mapping[str, Any], told: Sequence[Mapping[str, Any]], executors: int) -> Iterator[Finding]:
    """Yield differences and failures, once for all affected executors, and then a finding for each. Pure.

    Args:
        here: the driver's packages, as `describe_python` returns them.
        told: what each executor told.
        executors: how many there are; 0 if nobody tells.
    """
    problems: dict[tuple[str, FindingStatus, str, str], list[tuple[str, Mapping[str, Any]]]] = {}
    rows: list[Finding] = []
    names = _names(told)
    for name, each in zip(names, told, strict=True):
        own = [finding for finding in _judge(here, each) if finding.status in _BAD]
        for finding in own:
            key = (finding.step, finding.status, finding.text, finding.remedy)
            problems.setdefault(key, []).append((name, finding.facts))
        rows.append(_row(name, each, own))
    for (step, status, text, remedy), where in problems.items():
        having = [name for name, _ in where]
        facts = {**where[0][1], "executors": having}
        yield Finding(step, status, text, remedy, facts, _place(having, len(told)))
    yield from rows
    if told and len(told) < executors:
        text = f"Not judged: {executors - len(told)} of {executors} executors got no task."
        yield _of_cluster(FindingStatus.SKIPPED, text, "Run the check again while each executor has a free slot.")


def _listen(session: Any, coordinator: tuple[str, int], closing: ExitStack) -> tuple[str, int, bytes] | ConnectorError:
    host = (coordinator[0] or address_of_driver(session)).strip("[]")
    try:
        opened = closing.enter_context(DriverPort(open_listener(host, coordinator[1])))
    except ConnectorError as error:
        return error
    return host, opened.port, opened.key


def _judge(here: Mapping[str, Any], told: Mapping[str, Any]) -> Iterator[Finding]:
    for status, text, remedy in compare_packages(here, told):
        yield Finding("packages", status, text, remedy)
    if told.get("compiled") is False:
        yield Finding("packages", FindingStatus.WARNING, "The record codec is not compiled there: it is slow.", HINT)
    clock = _clock(told)
    if clock is not None and abs(clock["ahead_ms"]) > MAX_SKEW_MS + clock["error_ms"]:
        side = "ahead of" if clock["ahead_ms"] > 0 else "behind"
        text = f"The clock is {abs(clock['ahead_ms']) / 1000:.1f} s {side} the driver's clock."
        yield Finding("clock", FindingStatus.WARNING, text, "Set both clocks by NTP.", clock)
    driver = told.get("driver")
    if driver is not None and driver["reason"]:
        yield Finding(
            "driver",
            FindingStatus.WARNING,
            f"Continuous queries cannot reach the driver at {driver['address']}: {driver['reason']}.",
            "Let executors connect to the machine of the driver; options coordinatorHost and coordinatorPort name the "
            "address. Without continuous queries, ignore this.",
        )
    for each in told.get("findings", ()):
        yield Finding.from_json(each)


def _row(name: str, told: Mapping[str, Any], bad: Sequence[Finding]) -> Finding:
    reached: list[str] = []
    unreached: list[str] = []
    for each in told.get("findings", ()):
        if each["step"] == "advertised":
            reached += each["facts"].get("brokers", ())
            unreached += [each["facts"]["advertised"]] if "advertised" in each["facts"] else []
    driver = told.get("driver")
    facts = {
        "executor": name,
        "host": told["host"],
        "python": told["python"],
        "executable": told["executable"],
        "packages": dict(told["packages"]),
        "compiled": told.get("compiled"),
        "extras": list(told.get("extras", ())),
        "brokers_reached": reached,
        "brokers_not_reached": unreached,
        "clock": _clock(told),
        "driver": None if driver is None else {"address": driver["address"], "reached": not driver["reason"]},
    }
    versions = ", ".join(f"{package} {told['packages'].get(package) or 'missing'}" for package in _SHOWN)
    text = f"Python {told['python']}, {versions}; {len(reached)} of {len(reached) + len(unreached)} brokers in reach."
    statuses = {finding.status for finding in bad}
    worst = next((status for status in _BAD if status in statuses), FindingStatus.OK)
    return Finding("executor", worst, text, facts=facts, where=f"executor {name}")


def _clock(told: Mapping[str, Any]) -> dict[str, int] | None:
    """Return by how much the clock is ahead of the driver's; None if the executor could not reach the driver."""
    driver = told.get("driver") or {}
    return {name: round(driver[name]) for name in ("ahead_ms", "error_ms")} if "ahead_ms" in driver else None


def _names(told: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a name for each executor: its host, with a number from the second on the same host."""
    seen: dict[str, int] = {}
    names = []
    for each in told:
        host = each["host"]
        seen[host] = seen.get(host, 0) + 1
        names.append(host if seen[host] == 1 else f"{host} #{seen[host]}")
    return names


def _place(names: Sequence[str], executors: int) -> str:
    if len(names) == 1:
        return f"executor {names[0]}"
    if len(names) == executors:
        return f"all {executors} executors"
    shown = ", ".join(names[:_NAMED])
    return f"{len(names)} of {executors} executors: {shown}{', …' if len(names) > _NAMED else ''}"


def _of_cluster(status: FindingStatus, text: str, remedy: str = "") -> Finding:
    return Finding("executor", status, text, remedy, where="executors")
