"""The runs of queries whose events are sent: what they read and write, and how many rows so far. Pure."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark_kafka._ops.lineage.column_paths import straight_paths
from pyspark_kafka._ops.lineage.datasets import read_datasets, write_datasets
from pyspark_kafka._ops.lineage.naming import normalized
from pyspark_kafka._ops.lineage.values import JobRun, QueryFlow, RegistrySubject, RunFacts, TopicDataset
from pyspark_kafka.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark_kafka._ops.lineage.naming import ApplicationNames
    from pyspark_kafka._ops.lineage.values import DatasetColumn, Processing

_LOG = logging.getLogger("pyspark_kafka.lineage")


@dataclass(slots=True)
class ReadPart:
    """A read of a query.

    Attributes:
        options: as the user set them.
        columns: of the read.
        subjects: of keys and values, as far as the query has found them in a registry.
        topics: what it is known to read beside the topics that the options name.
        rows: how many rows were read so far; None if that is not known.
    """

    options: Mapping[str, str]
    columns: Sequence[DatasetColumn]
    subjects: Sequence[RegistrySubject] = ()
    topics: set[str] = field(default_factory=set)
    rows: int | None = None

    def datasets(self) -> Iterable[TopicDataset]:
        """Return its topics; the rows of several are not known apart."""
        found = read_datasets(self.options, self.columns, self.topics)
        return _counted((_with_subjects(each, self.subjects) for each in found), self.rows)


@dataclass(slots=True)
class WritePart:
    """A write of a query.

    Attributes:
        options: as the user set them.
        columns: of the rows.
        subjects: of keys and values, as far as the query has found them in a registry.
        streaming: whether the query is a stream.
        topics: what rows name as topics, as far as that is known.
        rows: how many rows were written so far; None if that is not known.
    """

    options: Mapping[str, str]
    columns: Sequence[DatasetColumn]
    subjects: Sequence[RegistrySubject] = ()
    streaming: bool = True
    topics: set[str] = field(default_factory=set)
    rows: int | None = None

    def datasets(self) -> Iterable[TopicDataset]:
        """Return its topics; the rows of several are not known apart."""
        found = write_datasets(self.options, self.columns, self.topics, streaming=self.streaming)
        return _counted((_with_subjects(each, self.subjects) for each in found), self.rows)


@dataclass(slots=True)
class QueryParts:
    """What a query does, as far as this package takes part in it.

    Attributes:
        command: what Spark's plan calls its last step; the second part of the job's name.
        reads: its reads of Kafka.
        writes: its writes to Kafka.
        is_straight: whether columns reach the write unchanged, with their names.
        processing: `BATCH` for a query that ends, else `STREAMING`.
        job_type: see `RunFacts`.
        name: of the query; the last part of the job's name if it writes no topic or several.
    """

    command: str
    reads: list[ReadPart] = field(default_factory=list)
    writes: list[WritePart] = field(default_factory=list)
    is_straight: bool = False
    processing: Processing = "STREAMING"
    job_type: str = "SQL_JOB"
    name: str | None = None

    @property
    def has_topics(self) -> bool:
        """Whether the query has a part in Kafka."""
        return bool(self.reads or self.writes)

    def flow(self) -> QueryFlow:
        """Return its topics and columns of now."""
        paths = {}
        if self.is_straight and len(self.reads) == len(self.writes) == 1:
            paths = straight_paths(self.reads[0].columns, self.writes[0].columns)
        return QueryFlow(_merged(self.reads), _merged(self.writes), paths)


@dataclass(frozen=True, slots=True)
class Application:
    """What all queries of a session have in common.

    Attributes:
        names: of jobs and parents.
        spark_version: of the session.
    """

    names: ApplicationNames
    spark_version: str

    def facts(self, parts: QueryParts, run_id: str, error: str | None = None) -> RunFacts:
        """Return all that is known of a run.

        Args:
            parts: what the query does.
            run_id: a UUID.
            error: why it failed; None if it did not.
        """
        flow, names = parts.flow(), self.names
        topic = flow.outputs[0].topic if len(flow.outputs) == 1 else normalized(parts.name or "")
        run = JobRun(names.namespace, names.job_name(parts.command, topic), run_id)
        return RunFacts(run, parts.processing, parts.job_type, self.spark_version, flow, names.parent, error)


class StreamingRuns:
    """The runs of streaming queries, from their start to their end.

    A run has an event when it starts and when it ends, and one about every ten seconds between, with the rows of the
    whole run: micro-batches and epochs may follow each other at ten a second.

    Runs on: the thread that sends.

    Args:
        application: of the session.
        clock: monotonic seconds.
        every_s: the seconds between two events of a run.
    """

    def __init__(self, application: Application, clock: Callable[[], float], every_s: float = 10.0) -> None:
        self._application, self._clock, self._every_s = application, clock, every_s
        self._parts: dict[str, QueryParts] = {}
        self._due: dict[str, float] = {}
        # The name of a job is the same in all events of a run, also if topics of a pattern are found later.
        self._jobs: dict[str, JobRun] = {}

    def start(self, run_id: str, parts: QueryParts) -> RunFacts | None:
        """Return the facts of a run that starts; None if it is known already, or has no part in Kafka."""
        if run_id in self._parts or not parts.has_topics:
            return None
        self._parts[run_id] = parts
        self._due[run_id] = self._clock()
        return self._facts(run_id)

    def progress(self, run_id: str, read: Sequence[tuple[set[str], int]], written: int | None) -> RunFacts | None:
        """Count the rows of a micro-batch or an epoch; return the facts if it is time for an event.

        Args:
            run_id: of the run; one that is not known has no events.
            read: for each read of Kafka, in the order of the query, the topics that it reads and the rows.
            written: the rows that the sink got; None if that is not known.
        """
        parts = self._parts.get(run_id)
        if parts is None:
            return None
        for part, (topics, rows) in zip(parts.reads, read, strict=False):
            part.topics |= topics
            part.rows = (part.rows or 0) + rows
        for write in parts.writes if written is not None else ():
            write.rows = (write.rows or 0) + (written or 0)
        if self._clock() < self._due[run_id]:
            return None
        self._due[run_id] = self._clock() + self._every_s
        return self._facts(run_id)

    def end(self, run_id: str, error: str | None) -> RunFacts | None:
        """Return the facts of a run that has ended, and forget it; None if it is not known."""
        if run_id not in self._parts:
            return None
        facts = self._facts(run_id, error)
        for kept in (self._parts, self._due, self._jobs):
            kept.pop(run_id)
        return facts

    def _facts(self, run_id: str, error: str | None = None) -> RunFacts:
        facts = self._application.facts(self._parts[run_id], run_id, error)
        return replace(facts, run=self._jobs.setdefault(run_id, facts.run))


def _merged(parts: Iterable[ReadPart | WritePart]) -> tuple[TopicDataset, ...]:
    """Return the topics of all parts, each once; a topic of two parts has the rows of both."""
    found: dict[tuple[str, str], TopicDataset] = {}
    for part in parts:
        try:
            datasets = list(part.datasets())
        except ConnectorError as error:
            # The query itself has checked its options, by another release of the package.
            _LOG.debug("The topics of a query are not known: %s", error)
            continue
        for each in datasets:
            key = each.namespace, each.topic
            known = found.get(key)
            if known is not None:
                rows = None if known.rows is None and each.rows is None else (known.rows or 0) + (each.rows or 0)
                each = replace(known, rows=rows)  # noqa: PLW2901 - one of both
            found[key] = each
    return tuple(found.values())


def _counted(datasets: Iterable[TopicDataset], rows: int | None) -> list[TopicDataset]:
    found = list(datasets)
    return [replace(found[0], rows=rows)] if len(found) == 1 else found


def _with_subjects(dataset: TopicDataset, subjects: Sequence[RegistrySubject]) -> TopicDataset:
    found = {each.column: each for each in (*dataset.subjects, *subjects)}
    return replace(dataset, subjects=tuple(found.values()))
