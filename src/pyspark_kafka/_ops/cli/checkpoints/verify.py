"""The work of `pyspark-kafka checkpoint verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.options import ExactlyOnceOptions
from pyspark_kafka._ops.cli.common.heartbeat import progress
from pyspark_kafka._ops.cli.common.outcome import ExitStatus
from pyspark_kafka._ops.cli.common.output import print_json, prose_console, say, warn
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import read_checkpoint
from pyspark_kafka._ops.operations.checkpoints.verify.cluster_checks import check_cluster
from pyspark_kafka._ops.operations.checkpoints.verify.cluster_snapshot import ask_cluster
from pyspark_kafka._ops.operations.checkpoints.verify.expectation import expect, list_newest
from pyspark_kafka._ops.operations.checkpoints.verify.file_checks import check_files
from pyspark_kafka._ops.operations.checkpoints.verify.file_judge import FileJudge
from pyspark_kafka._ops.operations.checkpoints.verify.findings import Findings, Severity
from pyspark_kafka._ops.operations.checkpoints.verify.state_checks import check_states_of_group
from pyspark_kafka._ops.operations.text import counted
from pyspark_kafka.errors import printable

if TYPE_CHECKING:
    from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import QueryCheckpoint
    from pyspark_kafka._ops.operations.settings import Settings

_STYLES = {Severity.FAULT: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


def verify_checkpoint(
    location: str,
    max_batches: int | None,
    settings: Settings | None,
    *,
    sink_id: str | None,
    commit_topic: str | None,
    as_json: bool,
) -> ExitStatus:
    """Print what is wrong with a checkpoint.

    Args:
        location: of the checkpoint.
        max_batches: how many batches to read, the last ones; None for all.
        settings: the connection, and the options of the query's writer; None: no requests to brokers.
        sink_id: the transactional id of the query's writer; None: from the settings, or from the query's id.
        commit_topic: the topic of commit markers; None: from the settings.
        as_json: whether to print JSON.

    Raises:
        CheckpointError: there is no checkpoint, or it cannot be listed.
    """
    checkpoint = read_checkpoint(location)
    findings = Findings()
    with progress("Reading the files") as step:
        check_files(checkpoint, findings, max_batches=max_batches, report=step.update)
    if settings is not None:
        _ask(checkpoint, findings, settings, sink_id, commit_topic)
    found = list(findings)
    if as_json:
        told = {
            "location": checkpoint.location,
            "asked_brokers": settings is not None,
            "faults": findings.count(Severity.FAULT),
            "warnings": findings.count(Severity.WARNING),
            "findings": [
                {
                    "severity": each.severity.value,
                    "code": each.code,
                    "where": each.where,
                    "text": each.text,
                    "advice": each.advice or None,
                }
                for each in found
            ],
            "unknown": findings.unknown,
        }
        print_json(told)
        return _status(findings)
    console = prose_console()
    for each in found:
        line = Text(f"{each.severity.value:<8}", style=_STYLES[each.severity])
        line.append(f"{printable(each.where)}: " if each.where else "", style="bold")
        line.append(f"{printable(each.text)} [{each.code}]", style="none")
        console.print(line, highlight=False)
        if each.advice:
            say(f"        Do: {each.advice}")
    warn(*(f"Not known: {sentence}" for sentence in findings.unknown), style="red")
    counts = ", ".join(
        counted(findings.count(severity), noun)
        for severity, noun in ((Severity.FAULT, "fault"), (Severity.WARNING, "warning"), (Severity.NOTE, "note"))
    )
    asked = "its files and the brokers" if settings is not None else "its files; no broker was asked"
    say(f"{counts}, by {asked}.")
    return _status(findings)


def _ask(
    checkpoint: QueryCheckpoint, findings: Findings, settings: Settings, sink_id: str | None, commit_topic: str | None
) -> None:
    exactly_once = None if settings.write is None else settings.write.exactly_once
    if exactly_once is not None:
        sink_id = sink_id or exactly_once.transactional_id
        commit_topic = commit_topic or exactly_once.commit_topic
    # Listed again: reading the files may have taken minutes, and the query may run.
    judge = FileJudge(read_checkpoint(checkpoint.files), findings, str)
    expected = expect(judge, sink_id, is_sink_named=exactly_once is not None)
    with progress("Asking the brokers", quiet_s=0) as step, KafkaClient(settings.connection) as client:
        snapshot = ask_cluster(client, expected, commit_topic or ExactlyOnceOptions().commit_topic, step.update)
    check_cluster(expected, snapshot, findings, newest=list_newest(judge))
    check_states_of_group(judge, expected, snapshot)


def _status(findings: Findings) -> ExitStatus:
    if findings.count(Severity.FAULT):
        return ExitStatus.FINDING
    return ExitStatus.INCOMPLETE if findings.unknown else ExitStatus.WELL
