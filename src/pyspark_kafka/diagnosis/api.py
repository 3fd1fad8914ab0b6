"""A whole check: the options, this process, and a worker."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pyspark_kafka.client.deadline import Deadline
from pyspark_kafka.diagnosis.context import Context
from pyspark_kafka.diagnosis.findings import Diagnosis, Finding
from pyspark_kafka.diagnosis.run import STEPS, run_steps, skipped, steps_of
from pyspark_kafka.diagnosis.steps.options import judge_options
from pyspark_kafka.diagnosis.steps.packages import judge_own_packages
from pyspark_kafka.diagnosis.worker import judge_worker
from pyspark_kafka.errors import OptionError
from pyspark_kafka.operations.settings import resolve_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark_kafka.operations.settings import Settings

DEFAULT_TIMEOUT_S = 60.0
DEFAULT_STEP_TIMEOUT_S = 10.0


def check(
    options: Mapping[str, Any],
    spark: Any = None,
    *,
    topics: tuple[str, ...] = (),
    timeout_s: float = DEFAULT_TIMEOUT_S,
    step_timeout_s: float = DEFAULT_STEP_TIMEOUT_S,
    show_record: bool = False,
    watch: Callable[[str, Finding | None], None] | None = None,
) -> Diagnosis:
    """Judge a connection to Kafka step by step, and say for each what was found and what to change.

    Nothing on the cluster is changed: no topic, no offset, no transaction, no consumer group. Failures are findings,
    not errors.

    Runs on: driver; blocks, at most for about `timeout_s`. With a session, one task runs on a worker as well.

    Args:
        options: those of a reader, of a writer, or of both, as Spark takes them; the prefix `kafka.` may be missing.
        spark: a session, classic or Connect, whose workers are judged as well; None judges this process only.
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
    try:
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
    if spark is not None:
        tell("Running a task on a worker")
        for finding in judge_worker(spark, settings, deadline, step_timeout_s * 1000):
            tell("", finding)
    return Diagnosis(tuple(findings), int((time.monotonic() - began) * 1000))
