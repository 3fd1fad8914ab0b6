"""Reads the checkpoint of a streaming query, of any engine and connector."""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from pyspark_kafka._connector.sink.driver.lane_record_file import LaneRecordFile
from pyspark_kafka._connector.sink.driver.write_schemas import WriteSchemasFile
from pyspark_kafka._ops.operations.checkpoints.batches import COMMITS, OFFSETS, BatchHistory, is_batch_name
from pyspark_kafka._ops.operations.checkpoints.unfinished import check_note
from pyspark_kafka.checkpoint import CheckpointFiles, OffsetSeqLog
from pyspark_kafka.checkpoint.continuous_files import (
    MESSAGES,
    OWNER,
    VERSIONS,
    WRITER,
    PreparedEpoch,
    epoch_of_messages,
    messages_name,
    read_owner,
    read_waiting_steps,
)
from pyspark_kafka.checkpoint.default_file_system import on_default_file_system
from pyspark_kafka.checkpoint.initial_offset_log import decode
from pyspark_kafka.checkpoint.reader_schemas import ReaderSchemasFile
from pyspark_kafka.checkpoint.topic_ids import TopicIdsFile
from pyspark_kafka.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka._base.offsets import KafkaSourceOffset
    from pyspark_kafka._connector.sink.source_positions import LaneRecord
    from pyspark_kafka._ops.operations.checkpoints.batches import PlannedBatch
    from pyspark_kafka._typed.codecs.schemas import RegisteredSchema
    from pyspark_kafka.checkpoint.continuous_files import WaitingStep
    from pyspark_kafka.checkpoint.files import DirectoryNames
    from pyspark_kafka.checkpoint.reader_schemas import ReaderSchema
    from pyspark_kafka.checkpoint.topic_ids import TopicIdentities

_OTHER_LOG = re.compile(rb"v[0-9]+\n")
_METADATA = "metadata"
_SOURCES = "sources"
_STATE = "state"
_CONTINUOUS_STATE = "continuous/state"


class CheckpointKind(Enum):
    """The last writer of a checkpoint."""

    EMPTY = "no batch yet"
    MICRO_BATCH = "micro-batches"
    CONTINUOUS = "continuous"
    # Spark's own trigger(continuous=…).
    SPARK_CONTINUOUS = "continuous, by Spark"


@dataclass(frozen=True, slots=True)
class StateOperator:
    """The directory of a stateful operator.

    Attributes:
        directory: below the checkpoint.
        name: Spark's name of the operator; empty if Spark has not noted it.
        partitions: the number of its partition directories; of a continuous query, key groups.
    """

    directory: str
    name: str
    partitions: int


class QueryCheckpoint:
    """The content of a query's checkpoint.

    The lists of the batches are read once; everything else is read at each call. A damaged file is an error only of
    the calls that read it.

    Runs on: any program; methods block on the file system.

    Args:
        files: where it is.
        names: what is in its directory.
        history: its batches.

    Attributes:
        files: where it is.
        names: what is in its directory.
        history: its batches.

    Raises:
        CheckpointError: by every method: a file cannot be read, is damaged, or is of a newer version.
    """

    def __init__(self, files: CheckpointFiles, names: DirectoryNames, history: BatchHistory) -> None:
        self.files = files
        self.names = names
        self.history = history

    @property
    def location(self) -> str:
        """Return the location as texts show it, without passwords."""
        return self.files.shown

    def query_id(self) -> str | None:
        """Return the id of the query; None if there is no file `metadata`.

        Raises:
            CheckpointError: the file has no id; or a fork, a rewind or a restore was not finished (condition
                CHECKPOINT_REWIND_UNFINISHED).
        """
        data = self.files.read(_METADATA)
        if data is None:
            return None
        check_note(self.files, data)
        try:
            return str(uuid.UUID(json.loads(data)["id"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise self._malformed(_METADATA, f"it has no id of a query ({error!r})") from error

    def kind(self) -> CheckpointKind:
        """Return the writer of the last batch."""
        last = self.last_begun()
        if last is None:
            return CheckpointKind.EMPTY
        if not last.entry.metadata:
            return CheckpointKind.SPARK_CONTINUOUS
        # Micro-batches note settings of Spark, epochs have none; both may write one checkpoint, one after the other.
        if not last.conf and self.owner() is not None:
            return CheckpointKind.CONTINUOUS
        return CheckpointKind.MICRO_BATCH

    def last_begun(self) -> PlannedBatch | None:
        """Return the last batch of the offset log; None without one."""
        batch_id = self.history.last_begun
        return None if batch_id is None else self.history.get(batch_id)

    def last_finished(self) -> PlannedBatch | None:
        """Return the last batch that is in both logs; None without one."""
        batch_id = self.history.last_finished
        return None if batch_id is None else self.history.get(batch_id)

    def unfinished(self) -> PlannedBatch | None:
        """Return the last batch of the offset log if it is not finished: a restart runs it again with the same ends."""
        last = self.last_begun()
        return None if last is None or last.finished else last

    def position(self) -> dict[str, KafkaSourceOffset]:
        """Return the position of the query: the end of the last finished batch, by source.

        Other sources than Kafka are left out. If no batch is finished, it is the start of the query, as far as the
        checkpoint has it.
        """
        last = self.last_finished()
        return self.beginnings() if last is None else last.offsets

    def beginnings(self) -> dict[str, KafkaSourceOffset]:
        """Return the start of the first batch, by source, as far as the checkpoint has it."""
        begun = {}
        for source in self.sources():
            offset = self.initial_offsets(source)
            if offset is not None:
                begun[source] = offset
        first = self.history.get(0) if self.history.is_begun(0) else None
        for source, offset in ({} if first is None else first.offsets).items():
            if source not in begun and offset.starts is not None:
                # Partitions that are missing there were added later.
                begun[source] = type(offset)(offset.starts)
        return begun

    def start_of(self, batch_id: int) -> dict[str, KafkaSourceOffset]:
        """Return the start of a batch, by source; without sources whose start is not in the checkpoint.

        With asynchronous progress tracking that is the end of the batch before it in the log: the batches that ran in
        between belong to it.
        """
        before = self.history.before(batch_id)
        if before is None:
            return self.beginnings() if batch_id == 0 else {}
        planned = self.history.get(before)
        return {} if planned is None else planned.offsets

    def sources(self) -> tuple[str, ...]:
        """Return the names of the sources that have a directory of their own, sorted."""
        return tuple(sorted(self.files.scan(_SOURCES).directories)) if _SOURCES in self.names.directories else ()

    def initial_offsets(self, source: str) -> KafkaSourceOffset | None:
        """Return the start of a source; None without such a file, or if another source than Kafka wrote it."""
        name = f"{_SOURCES}/{source}/0"
        data = self.files.read(name)
        # Spark's other sources keep other content in a file of this name, without the zero byte before it.
        if data is None or _OTHER_LOG.match(data):
            return None
        return decode(data, f"file {name} of checkpoint {self.files.shown}")

    def topic_ids(self, source: str) -> TopicIdentities:
        """Return the ids of the topics that a source has read; empty if it does not keep them."""
        return TopicIdsFile(self.files, f"{_SOURCES}/{source}").read()

    def reader_schemas(self, source: str) -> Mapping[str, ReaderSchema]:
        """Return the versions of a source's reader schemas; empty if it does not keep them."""
        return ReaderSchemasFile(self.files, f"{_SOURCES}/{source}").read() or {}

    def sink_schemas(self) -> Mapping[str, RegisteredSchema]:
        """Return the writer schemas of the query from a registry, by side; empty if it does not keep them."""
        return WriteSchemasFile(self.files).read()[1]

    def owner(self) -> str | None:
        """Return the start of a continuous query that writes the checkpoint; None if no continuous query wrote it."""
        return read_owner(self.files.read(OWNER)) if "continuous" in self.names.directories else None

    def prepared_epochs(self) -> tuple[int, ...]:
        """Return the epochs with kept commit messages, which are in doubt in the sink."""
        if "continuous" not in self.names.directories:
            return ()
        found = {epoch_of_messages(name) for name in self.files.scan(MESSAGES).files}
        return tuple(sorted(epoch for epoch in found if epoch is not None))

    def messages_of(self, epoch: int) -> str:
        """Return the name of the file with the commit messages of an epoch, from `offsets/N`."""
        begun = OffsetSeqLog(self.files).get(epoch)
        return messages_name(epoch, None if begun is None else begun.metadata.get(WRITER))

    def prepared_epoch(self, epoch: int) -> PreparedEpoch | None:
        """Return an epoch that was about to be committed; None if its commit messages are not kept."""
        name = self.messages_of(epoch)
        data = self.files.read(name)
        try:
            return None if data is None else PreparedEpoch.from_bytes(data)
        except ValueError as error:
            raise self._malformed(name, str(error)) from error

    def check_state_versions(self, epoch: int) -> None:
        """Raise if a continuous query's state versions after an epoch are kept and damaged."""
        name = f"{VERSIONS}/{epoch}"
        data = self.files.read(name)
        try:
            well = data is None or isinstance(json.loads(data)["heads"], dict)
        except (ValueError, KeyError, TypeError, RecursionError):
            well = False
        if not well:
            raise self._malformed(name, "it has no versions of states")

    def waiting_steps(self) -> tuple[WaitingStep, ...]:
        """Return the steps of a continuous query with timers that wait for event time, after the last finished epoch.

        Raises:
            CheckpointError: the file with the versions of states is damaged, or cannot be read.
        """
        last = self.last_finished()
        if last is None or "continuous" not in self.names.directories:
            return ()
        name = f"{VERSIONS}/{last.batch_id}"
        data = self.files.read(name)
        try:
            return () if data is None else read_waiting_steps(data)
        except ValueError as error:
            raise self._malformed(name, str(error)) from error

    def _malformed(self, name: str, reason: str) -> CheckpointError:
        return CheckpointError(
            f"{name} of checkpoint {self.files.shown} is malformed: {reason}.",
            condition="CHECKPOINT_LOG_INVALID",
            hint="Restore the file from a copy of the checkpoint.",
            parameters={"location": self.files.shown, "name": name},
        )

    def lane_record(self) -> LaneRecord | None:
        """Return the transaction record of an exactly-once continuous query; None if it never was one."""
        return LaneRecordFile(self.files).read() if "continuous" in self.names.directories else None

    def state_operators(self) -> tuple[StateOperator, ...]:
        """Return the stateful operators with a directory here, of Spark and of continuous queries."""
        found = []
        if _STATE in self.names.directories:
            for number in sorted(self.files.scan(_STATE).directories):
                directory = f"{_STATE}/{number}"
                partitions = [name for name in self.files.scan(directory).directories if is_batch_name(name)]
                found.append(StateOperator(directory, self._operator_name(directory), len(partitions)))
        if "continuous" in self.names.directories:
            for step in sorted(self.files.scan(_CONTINUOUS_STATE).directories):
                directory = f"{_CONTINUOUS_STATE}/{step}"
                found.append(StateOperator(directory, step, len(self.files.scan(directory).directories)))
        return tuple(found)

    def _operator_name(self, directory: str) -> str:
        """Return the name in Spark's metadata of an operator; empty if this program cannot read it."""
        data = self.files.read(f"{directory}/_metadata/metadata")
        _, _, text = (data or b"").decode(errors="replace").partition("\n")
        try:
            return str(json.loads(text)["operatorInfo"]["operatorName"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return ""


def files_of(location: str) -> CheckpointFiles:
    """Return the files of a checkpoint.

    Args:
        location: as for `CheckpointFiles`, and as the query has it: an absolute path without a scheme is on Hadoop's
            default file system, if `HADOOP_CONF_DIR` is set.
    """
    return CheckpointFiles(on_default_file_system(location))


def read_checkpoint(location: str | CheckpointFiles) -> QueryCheckpoint:
    """Read the names in a checkpoint: three listings, for any number of batches.

    Runs on: any program; blocks on the file system.

    Args:
        location: as for `files_of`.

    Raises:
        CheckpointError: there is no checkpoint there (condition CHECKPOINT_NOT_FOUND), or it cannot be listed.
    """
    files = location if isinstance(location, CheckpointFiles) else files_of(location)
    names = files.scan()
    history = BatchHistory(files, files.scan(OFFSETS), files.scan(COMMITS))
    if _METADATA not in names.files and not history.begun and not history.finished:
        raise CheckpointError(
            f"There is no checkpoint of a streaming query at {files.shown}: no file metadata, and no batch in "
            f"{OFFSETS} or {COMMITS}. Nothing was read.",
            condition="CHECKPOINT_NOT_FOUND",
            hint="Use the checkpointLocation of the query, not a directory above or below it.",
            parameters={"location": files.shown},
        )
    return QueryCheckpoint(files, names, history)
