"""A worker of Spark: one task that judges what depends on the machine.

Two functions run there: the first is pickled with its code and needs nothing but Python, so that it can tell which
packages there are; the second is imported there, as the functions of a query are.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

from pyspark_kafka._ops.diagnosis.findings import Finding, FindingStatus
from pyspark_kafka._ops.diagnosis.side_by_side import ask_all
from pyspark_kafka._ops.diagnosis.steps.packages import PACKAGES, compare_packages, describe_python, packages_probe
from pyspark_kafka.errors import ConnectorError, DeadlineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka._ops.operations.settings import Settings

# What the task leaves to the driver, to receive its result.
RETURN_MS = 2_000.0
_MAX_TEXT = 400


def judge_worker(spark: Any, settings: Settings | None, deadline: Deadline, step_ms: float) -> Iterator[Finding]:
    """Run a task and yield what it finds.

    Runs on: driver; blocks, at most until the deadline.

    Args:
        spark: a session, classic or Connect, or a function that returns one.
        settings: the options; None if they are not valid: then only packages are compared.
        deadline: of the whole check.
        step_ms: how long one step on the worker may take.
    """
    if deadline.expired:
        yield _failed(
            "packages", FindingStatus.SKIPPED, "Not judged: the time for the whole check is over (--timeout).", ""
        )
        return
    told = run_tasks(spark, lambda _: (packages_probe(PACKAGES), 1), deadline)
    if isinstance(told, Finding):
        yield told
        return
    there: dict[str, Any] = json.loads(told[0])
    where = f"worker {there['host']}"
    differences = compare_packages(describe_python(PACKAGES), there)
    for status, text, remedy in differences:
        yield Finding("packages", status, text, remedy, there, where)
    if not differences:
        text = (
            f"Python {there['python']} ({there['executable']}), with the packages of the driver in the same versions."
        )
        yield Finding("packages", FindingStatus.OK, text, facts=there, where=where)
    if any(status is FindingStatus.FAILED for status, _, _ in differences):
        text = "Not judged: the packages of the worker do not fit."
        yield Finding("names", FindingStatus.SKIPPED, text, where=where)
        return
    if settings is None:
        return
    left_ms = max(1.0, deadline.remaining_s() * 1000 - RETURN_MS)
    told = run_tasks(spark, lambda _: (_machine_probe(settings, left_ms, min(step_ms, left_ms)), 1), deadline)
    if isinstance(told, Finding):
        yield told
        return
    for finding in json.loads(told[0]):
        yield Finding.from_json({**finding, "where": where})


def _machine_probe(settings: Settings, timeout_ms: float, step_ms: float) -> Callable[[object], str]:
    def probe(_: object) -> str:
        import json  # noqa: PLC0415 - imported where it runs

        from pyspark_kafka._ops.diagnosis.run import check_here  # noqa: PLC0415

        return json.dumps([finding.to_json() for finding in check_here(settings, timeout_ms, step_ms)])

    return probe


def run_tasks(
    spark: Any, prepare: Callable[[Any], tuple[Callable[[object], str], int]], deadline: Deadline
) -> list[str] | Finding:
    """Run a function in tasks and return the text of each; a finding if that fails.

    Args:
        spark: a session, classic or Connect, or a function that returns one.
        prepare: takes the session, and returns the function and the number of tasks.
        deadline: of the whole check.
    """
    tag = f"pyspark-kafka-check-{uuid.uuid4().hex[:8]}"
    sessions: list[Any] = []

    def run(_: int) -> list[str]:
        session = spark() if callable(spark) else spark
        sessions.append(session)
        session.addTag(tag)
        function, tasks = prepare(session)
        rows = session.range(0, tasks, 1, tasks)
        from pyspark.sql.functions import udf  # noqa: PLC0415 - a check without workers needs no PySpark

        # Not with Arrow, which a worker may lack.
        return [str(row[0]) for row in rows.select(udf(function, "string", useArrow=False)("id")).collect()]

    (result,) = ask_all([0], run, deadline, foreign=True).values()
    if isinstance(result, list):
        return result
    if isinstance(result, DeadlineError):
        if not sessions:
            text = f"There is no Spark session after {deadline.timeout_ms / 1000:.0f} s, the time for the whole check."
            remedy = "Check the master or the address of the Spark Connect server, or raise --timeout."
            return _failed("packages", FindingStatus.FAILED, text, remedy)
        for session in sessions:
            session.interruptTag(tag)
        return _failed(
            "packages",
            FindingStatus.FAILED,
            f"No worker finished a task within {deadline.timeout_ms / 1000:.0f} s, the time for the whole check.",
            "Look at Spark's UI for free slots and at the logs of the executors, or raise --timeout.",
        )
    if not isinstance(result, Exception):
        raise result
    if not sessions:
        return _no_session(result)
    return _explain(result)


def _no_session(error: Exception) -> Finding:
    """Return the finding of a session that could not be made."""
    if isinstance(error, ConnectorError):
        return _failed("packages", FindingStatus.FAILED, error.message, error.hint)
    said = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    remedy = "Correct the master or the address of the Spark Connect server, and see that Spark runs there."
    return _failed("packages", FindingStatus.FAILED, f"There is no Spark session: {_short(said)}", remedy)


def _explain(error: Exception) -> Finding:
    """Return the finding of a task that failed; a guess by the text, as Spark has no codes for these."""
    text = str(error)
    if "PYTHON_VERSION_MISMATCH" in text:
        said = next(line for line in text.splitlines() if "PYTHON_VERSION_MISMATCH" in line)
        remedy = "Set PYSPARK_PYTHON to a Python of the driver's version on all workers, before the session is created."
        return _failed("packages", FindingStatus.FAILED, _short(said), remedy)
    if "Cannot run program" in text:
        said = next(line for line in text.splitlines() if "Cannot run program" in line)
        remedy = "Set PYSPARK_PYTHON to a Python that is there on all workers."
        return _failed("packages", FindingStatus.FAILED, _short(said), remedy)
    said = next((line for line in reversed(text.splitlines()) if "Error" in line and ":" in line), text)
    remedy = "Look at the logs of the executors; a query would fail in the same way."
    return _failed("packages", FindingStatus.FAILED, f"The task on a worker failed: {_short(said)}", remedy)


def _failed(step: str, status: FindingStatus, text: str, remedy: str) -> Finding:
    return Finding(step, status, text, remedy, where="worker")


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]} …"
