"""The facts of a query's run, of which events are made. Plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Processing: TypeAlias = Literal["BATCH", "STREAMING"]
State: TypeAlias = Literal["START", "RUNNING", "COMPLETE", "FAIL"]


@dataclass(frozen=True, slots=True)
class DatasetColumn:
    """A column of a dataset.

    Attributes:
        name: of the column.
        type: Spark's name of its type.
        fields: the parts of a struct, a map or an array.
    """

    name: str
    type: str
    fields: tuple[DatasetColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class RegistrySubject:
    """The schema of a topic's keys or values in a registry.

    Attributes:
        column: `key` or `value`.
        subject: the name in the registry.
        version: its version; None if it is not known where the event is made.
    """

    column: str
    subject: str
    version: int | None = None


@dataclass(frozen=True, slots=True)
class TopicDataset:
    """A topic as a dataset.

    Attributes:
        namespace: `kafka://host:port` of the first bootstrap server.
        topic: the name of the topic.
        columns: as the query reads or writes them.
        subjects: of keys and values that have a schema in a registry.
        rows: how many rows of the run were read from it or written to it; None if that is not known.
    """

    namespace: str
    topic: str
    columns: tuple[DatasetColumn, ...] = ()
    subjects: tuple[RegistrySubject, ...] = ()
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class JobRun:
    """A run by the names that OpenLineage knows it by.

    Attributes:
        namespace: of the job.
        name: of the job.
        run_id: a UUID.
    """

    namespace: str
    name: str
    run_id: str


@dataclass(frozen=True, slots=True)
class ParentRun:
    """The run that has started the queries of this program.

    Attributes:
        parent: of the queries.
        root: the outermost run, such as the run of a workflow.
    """

    parent: JobRun
    root: JobRun


@dataclass(frozen=True, slots=True)
class QueryFlow:
    """What a run reads and writes.

    Attributes:
        inputs: the topics that it reads.
        outputs: the topics that it writes.
        paths: for each output column the input column that it is a copy of; a part of a struct is `value.id`. Empty
            if that is not known.
    """

    inputs: tuple[TopicDataset, ...] = ()
    outputs: tuple[TopicDataset, ...] = ()
    paths: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunFacts:
    """All that is known about a run.

    Attributes:
        run: its names.
        processing: `BATCH` for a query that ends, else `STREAMING`.
        job_type: the kind of query: `SQL_JOB` as OpenLineage's agent for Spark has it, or `CONTINUOUS_QUERY`.
        spark_version: of the session.
        flow: what it reads and writes.
        parent: the run that has started it; None if that is not known.
        error: why it failed; None if it did not.
    """

    run: JobRun
    processing: Processing
    job_type: str
    spark_version: str
    flow: QueryFlow = field(default_factory=QueryFlow)
    parent: ParentRun | None = None
    error: str | None = None
