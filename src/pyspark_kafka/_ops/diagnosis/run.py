"""The order of the steps, their time, and the result of blocked steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._ops.diagnosis.context import Context
from pyspark_kafka._ops.diagnosis.findings import Finding, FindingStatus
from pyspark_kafka._ops.diagnosis.steps.brokers import judge_advertised, judge_clock, judge_cluster
from pyspark_kafka._ops.diagnosis.steps.login import judge_login
from pyspark_kafka._ops.diagnosis.steps.packages import judge_extras
from pyspark_kafka._ops.diagnosis.steps.reach import judge_names, judge_tcp
from pyspark_kafka._ops.diagnosis.steps.record import judge_record
from pyspark_kafka._ops.diagnosis.steps.registry import judge_registry, wanted_subjects
from pyspark_kafka._ops.diagnosis.steps.rights import judge_rights
from pyspark_kafka._ops.diagnosis.steps.tls import judge_tls
from pyspark_kafka._ops.diagnosis.steps.topics import judge_topics
from pyspark_kafka.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark_kafka._ops.operations.settings import Settings


@dataclass(frozen=True, slots=True)
class CheckStep:
    """One step.

    Attributes:
        name: as in `Finding.step`.
        title: what it does, for progress.
        judge: yields its findings.
        on_worker: whether it is judged on a worker as well: what depends on the machine.
        is_needed: whether the later steps need it.
        stands_alone: whether it is judged although others failed.
    """

    name: str
    title: str
    judge: Callable[[Context], Iterator[Finding]]
    on_worker: bool = True
    is_needed: bool = False
    stands_alone: bool = False


STEPS = (
    CheckStep("names", "Looking up names", judge_names, is_needed=True),
    CheckStep("tcp", "Connecting", judge_tcp, is_needed=True),
    CheckStep("tls", "Looking at listeners", judge_tls, is_needed=True),
    CheckStep("sasl", "Logging in", judge_login, is_needed=True),
    CheckStep("brokers", "Asking for the cluster", judge_cluster, is_needed=True),
    CheckStep("advertised", "Connecting to each broker", judge_advertised, is_needed=True),
    CheckStep("clock", "Comparing clocks", judge_clock),
    CheckStep("topics", "Describing topics", judge_topics),
    CheckStep("rights", "Asking for rights", judge_rights, on_worker=False),
    CheckStep("record", "Reading a record", judge_record),
)
# Not a matter of Kafka; of options without a registry it finds nothing, and has no line.
REGISTRY = CheckStep("registry", "Asking the schema registry", judge_registry, stands_alone=True)


def steps_of(settings: Settings) -> tuple[CheckStep, ...]:
    """Return the steps that options need, in order."""
    return (*STEPS, REGISTRY) if wanted_subjects(settings) else STEPS


def check_here(settings: Settings, timeout_ms: float, step_ms: float) -> list[Finding]:
    """Judge what depends on the machine; called on a worker."""
    findings = list(judge_extras(settings.connection))
    with Context(settings.with_time(step_ms), Deadline(timeout_ms), step_ms) as context:
        steps = [step for step in steps_of(settings) if step.on_worker]
        findings += [each for _, each in run_steps(context, steps) if each is not None]
    return findings


def run_steps(
    context: Context, steps: tuple[CheckStep, ...] | list[CheckStep]
) -> Iterator[tuple[CheckStep, Finding | None]]:
    """Run steps in order; yield each as it begins, with None, and then with each of its findings."""
    for step in steps:
        yield step, None
        if not context.blocked and context.deadline.expired:
            context.blocked = "the time for the whole check is over (--timeout)"
        if context.blocked and (not step.stands_alone or context.deadline.expired):
            yield step, skipped(step, context.blocked)
            continue
        try:
            for finding in step.judge(context):
                yield step, finding
        except ConnectorError as error:
            if step.is_needed:
                context.blocked = f"step '{step.name}' failed"
            yield step, Finding(step.name, FindingStatus.FAILED, error.message, error.hint, dict(error.parameters))


def skipped(step: CheckStep, reason: str) -> Finding:
    """Return the finding of a blocked step."""
    return Finding(step.name, FindingStatus.SKIPPED, f"Not judged: {reason}.")
