"""A whole check: the options, this process, and a worker."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._connector.spark.processes.required_version import require_pyspark
from pyspark_kafka._ops.diagnosis.context import Context
from pyspark_kafka._ops.diagnosis.findings import Diagnosis, Finding
from pyspark_kafka._ops.diagnosis.run import STEPS, run_steps, skipped, steps_of
from pyspark_kafka._ops.diagnosis.steps.options import judge_options
from pyspark_kafka._ops.diagnosis.steps.packages import judge_own_packages
from pyspark_kafka._ops.diagnosis.worker import judge_worker
from pyspark_kafka._ops.operations.settings import resolve_settings
from pyspark_kafka.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark_kafka._ops.operations.settings import Settings

DEFAULT_TIMEOUT_S = 60.0
DEFAULT_STEP_TIMEOUT_S = 10.0
_MAX_PORT = 65_535


def check(
    options: Mapping[str, Any],
    spark: Any = None,
    *,
    cluster: bool = False,
    topics: tuple[str, ...] = (),
    timeout_s: float = DEFAULT_TIMEOUT_S,
    step_timeout_s: float = DEFAULT_STEP_TIMEOUT_S,
    show_record: bool = False,
    watch: Callable[[str, Finding | None], None] | None = None,
) -> Diagnosis:
    """Judge a connection to Kafka step by step, and say for each what was found and what to change.

    Nothing on the cluster is changed: no topic, no offset, no transaction, no consumer group. Failures are findings,
    not errors.

    Runs on: driver; blocks, at most for about `timeout_s`. With a session, one task runs on a worker as well, or one
    on each executor.

    Args:
        options: of a reader, of a writer, or of both, as Spark takes them; the prefix `kafka.` may be missing.
        spark: a session, classic or Connect, of which a worker is judged as well; None judges this process only.
        cluster: whether all executors of the session are judged in place of one worker; without a session, the
            executors of the session that Spark has or makes by its own settings. Options `coordinatorHost` and
            `coordinatorPort` of the writer of a continuous query then set where the driver listens for them.
        topics: further topics to look at.
        timeout_s: seconds for everything; what is not reached is skipped.
        step_timeout_s: seconds for one step.
        show_record: whether key and value of the first record are in its finding.
        watch: called with the title of each step as it begins and None, then with each finding.

    Example:
        >>> check({"kafka.bootstrap.servers": "localhost:1", "subscribe": "orders"}).ok
        False
    """
    began = time.monotonic()
    deadline = Deadline(timeout_s * 1000)
    findings: list[Finding] = []

    def tell(title: str, finding: Finding | None = None) -> None:
        if finding is not None:
            findings.append(finding)
        if watch is not None:
            watch(title, finding)

    tell("Looking at packages")
    settings: Settings | None = None
    refused: OptionError | None = None
    coordinator = "", 0
    try:
        if cluster:
            options, coordinator = _split_coordinator(options)
        settings = resolve_settings(options, topics)
    except OptionError as error:
        refused = error
    for finding in judge_own_packages(settings.connection if settings is not None else None):
        tell("", finding)
    for finding in judge_options(settings, refused):
        tell("", finding)
    if settings is None:
        for step in STEPS:
            tell("", skipped(step, "the options are not valid"))
    else:
        with Context(
            settings.with_time(step_timeout_s * 1000), deadline, step_timeout_s * 1000, show_record
        ) as context:
            for step, each in run_steps(context, steps_of(settings)):
                tell(step.title, each)
    if cluster:
        # Loads the continuous engine, which other checks do not need.
        from pyspark_kafka._ops.diagnosis.executors import judge_executors  # noqa: PLC0415

        tell("Running a task on each executor")
        for finding in judge_executors(spark or _own_session, settings, deadline, step_timeout_s * 1000, coordinator):
            tell("", finding)
    elif spark is not None:
        tell("Running a task on a worker")
        for finding in judge_worker(spark, settings, deadline, step_timeout_s * 1000):
            tell("", finding)
    return Diagnosis(tuple(findings), int((time.monotonic() - began) * 1000))


def _split_coordinator(options: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, int]]:
    """Return the options of Kafka, and where the driver of a continuous query listens, which only its writer has.

    Raises:
        OptionError: the port is none.
    """
    kept = dict(options)
    found = {"coordinatorhost": "", "coordinatorport": "0"}
    for name in options:
        if name.strip().lower() in found:
            found[name.strip().lower()] = str(kept.pop(name)).strip()
    port = found["coordinatorport"]
    if not port.isdecimal() or int(port) > _MAX_PORT:
        raise OptionError(
            f"Option coordinatorPort must be a whole number, 0 to {_MAX_PORT}, but is {port!r}.",
            condition="OPTION_INVALID",
            hint="Set it to the port at which executors reach the driver, or leave it out for any free port.",
        )
    return kept, (found["coordinatorhost"], int(port))


def _own_session() -> Any:
    require_pyspark()
    from pyspark.sql import SparkSession  # noqa: PLC0415 - a check without workers needs no PySpark

    return SparkSession.builder.getOrCreate()
