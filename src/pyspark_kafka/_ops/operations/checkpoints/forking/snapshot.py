"""The input of a plan from a checkpoint, read at one moment: positions, files, the last batches."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka._ops.operations.checkpoints.batches import COMMITS, OFFSETS
from pyspark_kafka._ops.operations.checkpoints.forking.raw_log import FINISHED, LogText
from pyspark_kafka._ops.operations.checkpoints.state_chains import StateChains
from pyspark_kafka.checkpoint.continuous_files import VERSIONS
from pyspark_kafka.checkpoint.state_names import StateVersion
from pyspark_kafka.errors import CheckpointError, StateError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark_kafka._base.offsets import KafkaSourceOffset
    from pyspark_kafka._connector.sink.source_positions import LaneRecord
    from pyspark_kafka._ops.operations.checkpoints.batches import SourceEnd
    from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import CheckpointKind, QueryCheckpoint
    from pyspark_kafka.checkpoint import CheckpointFiles
    from pyspark_kafka.checkpoint.topic_ids import TopicIdentities


@dataclass(frozen=True, slots=True)
class FinishedBatch:
    """The files of a batch.

    Attributes:
        batch_id: its number.
        ends: its ends, by source.
        offsets: its file in the offset log.
        commit: its file in the commit log.
        state: of a continuous query, the versions of the states after it, as text; None without such a file.
    """

    batch_id: int
    ends: Mapping[str, SourceEnd]
    offsets: LogText
    commit: LogText
    state: str | None = None


@dataclass(frozen=True, slots=True)
class CheckpointSnapshot:
    """The state of a checkpoint.

    Attributes:
        location: its location, without passwords.
        query_id: of the query; None if the file `metadata` is missing.
        kind: its writer.
        finished: the batches that are in both logs, sorted.
        last_number: the last batch in any of the logs.
        last: the last finished batch; without a finished batch, the last begun one.
        position: the offsets of the query's Kafka sources, by source.
        wanted: the requested batch; None without a request, or if it does not exist or is not finished.
        topic_ids: the ids of topics that each source keeps, by source.
        restarts: for each source with recreated topics, the batch after which it began to read the new topics.
        files: the names of all visible files.
        lane_record: the record of exactly-once transactions of a continuous query; None without transactions.
        is_owned: whether a continuous query has ever used the checkpoint.
        last_state: of a continuous query, the versions of the states after the last epoch.
        broken_states: of the requested batch, the directories of states that miss files or have damaged files.
    """

    location: str
    query_id: str | None
    kind: CheckpointKind
    finished: tuple[int, ...]
    last_number: int
    last: FinishedBatch
    position: Mapping[str, KafkaSourceOffset]
    wanted: FinishedBatch | None
    topic_ids: Mapping[str, TopicIdentities]
    restarts: Mapping[str, int]
    files: tuple[str, ...]
    lane_record: LaneRecord | None = None
    is_owned: bool = False
    last_state: str | None = None
    broken_states: tuple[str, ...] = ()

    @property
    def state_files(self) -> tuple[str, ...]:
        """Return the files of Spark's state stores."""
        return tuple(name for name in self.files if name.startswith("state/"))


def read_snapshot(checkpoint: QueryCheckpoint, batch_id: int | None = None) -> CheckpointSnapshot:
    """Read the input of a plan: the listings of all directories and the files of a few batches.

    Runs on: any program; blocks on the file system.

    Args:
        checkpoint: of the query.
        batch_id: the requested batch; None without a request.

    Raises:
        CheckpointError: no batch has begun (condition CHECKPOINT_PLACE_INVALID), or a file cannot be read.
    """
    history, files = checkpoint.history, checkpoint.files
    last_begun = checkpoint.last_begun()
    if last_begun is None:
        raise CheckpointError(
            f"No batch of the query of checkpoint {files.shown} has begun: there is no place to leave from.",
            condition="CHECKPOINT_PLACE_INVALID",
            hint="Start the query with another startingOffsets or startingTimestamp instead.",
            parameters={"location": files.shown},
        )
    finished = tuple(each for each in history.finished if history.is_begun(each))
    last_id = finished[-1] if finished else last_begun.batch_id
    last = _batch(checkpoint, last_id)
    if last is None:
        raise _changed(files, last_id)
    topic_ids = {source: checkpoint.topic_ids(source) for source in last.ends}
    restarts = {
        source: number
        for source, ids in topic_ids.items()
        if ids.restarted and (number := _restart_of(checkpoint, source, ids.restart_end)) is not None
    }
    wanted = None if batch_id is None or batch_id not in finished else _batch(checkpoint, batch_id)
    return CheckpointSnapshot(
        location=files.shown,
        query_id=checkpoint.query_id(),
        kind=checkpoint.kind(),
        finished=finished,
        last_number=max(last_begun.batch_id, *history.finished[-1:], last_id),
        last=last,
        position=checkpoint.position(),
        wanted=wanted,
        topic_ids=topic_ids,
        restarts=restarts,
        files=tuple(name for name in walk_files(files) if not name.rpartition("/")[2].startswith(".")),
        lane_record=checkpoint.lane_record(),
        is_owned=checkpoint.owner() is not None,
        last_state=_text(files.read(f"{VERSIONS}/{last_id}")),
        broken_states=() if wanted is None or wanted.state is None else _broken_states(files, wanted.state),
    )


def _broken_states(files: CheckpointFiles, text: str) -> tuple[str, ...]:
    """Return the directories of states that a restart cannot read; none if the text is malformed."""
    try:
        heads = {name: StateVersion.parse(version).text for name, version in json.loads(text)["heads"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ()
    broken = []
    with StateChains.of(files) as chains:
        for directory, version in heads.items():
            try:
                chains.check(directory, version)
            except StateError:
                broken.append(directory)
    return tuple(broken)


def walk_files(files: CheckpointFiles, directory: str = "") -> Iterator[str]:
    """Yield the names of all files below a directory, hidden ones included.

    Raises:
        CheckpointError: a directory cannot be listed, or has too many names.
    """
    names = files.scan(directory)
    if not names.complete:
        raise CheckpointError(
            f"Directory {directory or '.'} of checkpoint {files.shown} has too many files to be copied.",
            condition="CHECKPOINT_FILE_TOO_LARGE",
            hint="Check the location: a directory of this size is not part of a streaming checkpoint.",
            parameters={"location": files.shown, "name": directory},
        )
    prefix = f"{directory}/" if directory else ""
    yield from (prefix + name for name in sorted((*names.files, *names.hidden)))
    for name in sorted(names.directories):
        yield from walk_files(files, prefix + name)


def _batch(checkpoint: QueryCheckpoint, batch_id: int) -> FinishedBatch | None:
    files = checkpoint.files
    planned = checkpoint.history.get(batch_id)
    data = files.read(f"{OFFSETS}/{batch_id}")
    if planned is None or data is None:
        return None
    # Read as a value first, which refuses a damaged file.
    checkpoint.history.get_commit(batch_id)
    commit = files.read(f"{COMMITS}/{batch_id}")
    return FinishedBatch(
        batch_id,
        planned.ends,
        LogText.parse(data),
        FINISHED if commit is None else LogText.parse(commit),
        _text(files.read(f"{VERSIONS}/{batch_id}")),
    )


def _restart_of(checkpoint: QueryCheckpoint, source: str, restart_end: str) -> int | None:
    """Return the batch after which a source began to read recreated topics; None if the logs no longer have it.

    Micro-batches note the end of the first batch with the new topics, continuous queries their start.
    """
    from_start = restart_end.startswith("from ")
    text = restart_end.removeprefix("from ")
    for batch_id in reversed(checkpoint.history.begun):
        planned = checkpoint.history.get(batch_id)
        offset = None if planned is None else planned.offsets.get(source)
        if offset is not None and text in (offset.json(), type(offset)(offset.partitions).json()):
            return batch_id if from_start else batch_id - 1
    return None


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")


def _changed(files: CheckpointFiles, batch_id: int) -> CheckpointError:
    return CheckpointError(
        f"{OFFSETS}/{batch_id} of checkpoint {files.shown} was removed while it was read: a query is writing there.",
        condition="CHECKPOINT_IN_USE",
        hint="Stop the query, and run the command again.",
        parameters={"location": files.shown},
    )
