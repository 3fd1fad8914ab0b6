"""The work of `pyspark-kafka checkpoint verify`. Layer: cli."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.text import Text

from pyspark_kafka.cli.checkpoints.telling import reporting
from pyspark_kafka.cli.common.outcome import ExitStatus
from pyspark_kafka.client.cluster.kafka_client import KafkaClient
from pyspark_kafka.errors import printable
from pyspark_kafka.operations.checkpoints.reading import read_checkpoint
from pyspark_kafka.operations.checkpoints.verify.cluster_checks import check_cluster
from pyspark_kafka.operations.checkpoints.verify.cluster_facts import ask_cluster
from pyspark_kafka.operations.checkpoints.verify.expectation import expect, list_newest
from pyspark_kafka.operations.checkpoints.verify.file_checks import check_files
from pyspark_kafka.operations.checkpoints.verify.file_judge import FileJudge
from pyspark_kafka.operations.checkpoints.verify.findings import Findings, Severity
from pyspark_kafka.options import ExactlyOnceOptions

if TYPE_CHECKING:
    from pyspark_kafka.operations.checkpoints.reading import QueryCheckpoint
    from pyspark_kafka.operations.settings import Settings

# Reading that number of batches may take more than 2 s.
_MANY = 2_000
_STYLES = {Severity.FAULT: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


def verify_checkpoint(
    location: str,
    most: int | None,
    settings: Settings | None,
    *,
    sink_id: str | None,
    commit_topic: str | None,
    as_json: bool,
) -> ExitStatus:
    """Print what is wrong with a checkpoint.

    Args:
        location: of the checkpoint.
        most: how many batches to read, the last ones; None for all.
        settings: how to reach the cluster, and the options of the query's writer; None asks no broker.
        sink_id: the transactional id of the query's writer; None: the one of the settings, or that of the query's id.
        commit_topic: the topic of commit markers; None: the one of the settings.
        as_json: whether to print JSON.

    Raises:
        CheckpointError: there is no checkpoint, or it cannot be listed.
    """
    checkpoint = read_checkpoint(location)
    findings = Findings()
    count = len(checkpoint.history.begun)
    with reporting("Reading the files", long=(count if most is None else min(most, count)) > _MANY) as report:
        check_files(checkpoint, findings, most=most, report=report)
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
        typer.echo(json.dumps(told, indent=2))
        return _status(findings)
    console, errors = Console(soft_wrap=True), Console(stderr=True, soft_wrap=True)
    for each in found:
        line = Text(f"{each.severity.value:<8}", style=_STYLES[each.severity])
        line.append(f"{printable(each.where)}: " if each.where else "", style="bold")
        line.append(f"{printable(each.text)} [{each.code}]", style="none")
        console.print(line, highlight=False)
        if each.advice:
            console.print(f"        Do: {printable(each.advice)}", markup=False, highlight=False)
    for sentence in findings.unknown:
        errors.print(f"Not known: {printable(sentence)}", style="red", markup=False, highlight=False)
    faults, warnings = findings.count(Severity.FAULT), findings.count(Severity.WARNING)
    asked = "its files and the brokers" if settings is not None else "its files; no broker was asked"
    console.print(
        f"{faults} faults, {warnings} warnings, {findings.count(Severity.NOTE)} notes, by {asked}.",
        markup=False,
        highlight=False,
    )
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
    expected = expect(judge, sink_id)
    with reporting("Asking the brokers", long=True) as report, KafkaClient(settings.connection) as client:
        facts = ask_cluster(client, expected, commit_topic or ExactlyOnceOptions().commit_topic, report)
    check_cluster(expected, facts, findings, newest=list_newest(judge))


def _status(findings: Findings) -> ExitStatus:
    if findings.count(Severity.FAULT):
        return ExitStatus.FINDING
    return ExitStatus.INCOMPLETE if findings.unknown else ExitStatus.WELL
