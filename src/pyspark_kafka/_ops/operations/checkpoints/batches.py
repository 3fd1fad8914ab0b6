"""The batches in the logs of a checkpoint: their numbers, their ends in every source, and their times.

One listing of each log returns the numbers; the file of a batch is read on demand.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka.checkpoint import CommitLog, OffsetSeqLog
from pyspark_kafka.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka.checkpoint import CheckpointFiles, Commit, OffsetSeq
    from pyspark_kafka.checkpoint.files import DirectoryNames

OFFSETS, COMMITS = "offsets", "commits"

MOVED = "pyspark_kafka.moved"
"""In the settings of a batch that a fork or a rewind has written. Spark ignores settings that it does not know."""

# The end of the year 9999, less a day for any time zone: later values are not times, and programs fail at them.
_LATEST_MS = 253_402_300_800_000 - 86_400_000


@dataclass(frozen=True, slots=True)
class SourceEnd:
    """The end of a batch in one source.

    Attributes:
        source: the name of the source: "0", "1", … if the query does not name its sources.
        text: the JSON of the offset, as the file has it; None if the source had none yet.
        offset: the same as a value; None for another source than Kafka, or without an offset yet.
    """

    source: str
    text: str | None
    offset: KafkaSourceOffset | None

    @property
    def is_other(self) -> bool:
        """Whether the offset belongs to another source than Kafka."""
        return self.text is not None and self.offset is None


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """A batch as the offset log has it; of a continuous query, an epoch.

    Attributes:
        batch_id: its number.
        ends: its ends by source, in the order of the file.
        entry: the content of the file.
        finished: whether the commit log has the batch.
    """

    batch_id: int
    ends: Mapping[str, SourceEnd]
    entry: OffsetSeq
    finished: bool

    @property
    def offsets(self) -> dict[str, KafkaSourceOffset]:
        """Return its end in each Kafka source."""
        return {name: end.offset for name, end in self.ends.items() if end.offset is not None}

    @property
    def planned_at_ms(self) -> int | None:
        """Return the time of its plan, milliseconds since 1970-01-01 UTC; None without a time."""
        return known_time_ms(self.entry.metadata.get("batchTimestampMs")) or None

    @property
    def watermark_ms(self) -> int | None:
        """Return its watermark, milliseconds since 1970-01-01 UTC; None without one."""
        return known_time_ms(self.entry.metadata.get("batchWatermarkMs")) or None

    @property
    def conf(self) -> Mapping[str, Any]:
        """Return the settings of Spark that stay the same until the query gets a new checkpoint."""
        return {name: value for name, value in self._conf().items() if name != MOVED}

    @property
    def is_moved(self) -> bool:
        """Whether a fork or a rewind has written it: it moved the query to its ends, and read nothing."""
        return MOVED in self._conf()

    def _conf(self) -> Mapping[str, Any]:
        conf = self.entry.metadata.get("conf")
        return conf if isinstance(conf, dict) else {}


class BatchHistory:
    """The batches that a query has begun and finished, by their numbers.

    Runs on: any program; `get` and `get_commit` read a file at each call.

    Args:
        files: the checkpoint.
        offsets: the names in the directory `offsets`.
        commits: the names in the directory `commits`.

    Attributes:
        begun: the numbers in the offset log, sorted. Spark removes old ones.
        finished: the numbers in the commit log, sorted. With asynchronous progress tracking, both logs skip some.
    """

    def __init__(self, files: CheckpointFiles, offsets: DirectoryNames, commits: DirectoryNames) -> None:
        self._offset_log = OffsetSeqLog(files)
        self._commit_log = CommitLog(files)
        self._files = files
        self.begun = batch_numbers(offsets)
        self.finished = batch_numbers(commits)

    def is_finished(self, batch_id: int) -> bool:
        """Return whether the commit log has a batch."""
        return _has(self.finished, batch_id)

    def is_begun(self, batch_id: int) -> bool:
        """Return whether the offset log has a batch."""
        return _has(self.begun, batch_id)

    @property
    def last_finished(self) -> int | None:
        """Return the last batch that is in both logs; None without such a batch."""
        return next((each for each in reversed(self.finished) if self.is_begun(each)), None)

    @property
    def last_begun(self) -> int | None:
        """Return the last batch of the offset log; None if it is empty."""
        return self.begun[-1] if self.begun else None

    def is_passed_over(self, batch_id: int) -> bool:
        """Return whether an unfinished batch is never run again, because a rewind has moved the query after it.

        Raises:
            CheckpointError: as `get`, of the batch that follows it.
        """
        if self.is_finished(batch_id):
            return False
        place = bisect_left(self.begun, batch_id)
        following = next((each for each in self.begun[place + 1 :] if self.is_finished(each)), None)
        planned = None if following is None else self.get(following)
        return planned is not None and planned.is_moved

    def before(self, batch_id: int) -> int | None:
        """Return the batch before another in the offset log; None for the first."""
        place = bisect_left(self.begun, batch_id)
        return self.begun[place - 1] if place else None

    def get(self, batch_id: int) -> PlannedBatch | None:
        """Return a batch of the offset log; None if its file does not exist, or was removed.

        Raises:
            CheckpointError: the file cannot be read, is malformed, or was written by a newer version.
        """
        entry = self._offset_log.get(batch_id)
        if entry is None:
            return None
        ends = {}
        for name, text in zip(entry.sources, entry.offsets, strict=True):
            try:
                ends[name] = SourceEnd(name, text, None if text is None else kafka_offset(text))
            except CheckpointError as error:
                raise error.located(
                    f"source {name} of {OFFSETS}/{batch_id} of checkpoint {self._files.shown}"
                ) from error
        return PlannedBatch(batch_id, ends, entry, self.is_finished(batch_id))

    def get_commit(self, batch_id: int) -> Commit | None:
        """Return a batch of the commit log; None if its file does not exist, or was removed.

        Raises:
            CheckpointError: the file cannot be read, is malformed, or was written by a newer version.
        """
        return self._commit_log.get(batch_id)

    def written_ms(self, batch_id: int, log: str = COMMITS) -> int | None:
        """Return the time of a batch's file; None without the file, or if the file system has no times.

        Args:
            batch_id: its number.
            log: `OFFSETS` for the time when the batch began, `COMMITS` for the time when it was done.

        Raises:
            CheckpointError: the status of the file cannot be read.
        """
        status = self._files.status(f"{log}/{batch_id}")
        return None if status is None else known_time_ms(status.modified_ms)


def batch_numbers(names: DirectoryNames) -> tuple[int, ...]:
    """Return the numbers of the batches among the files of a log, sorted."""
    return tuple(sorted(int(name) for name in names.files if is_batch_name(name)))


def is_batch_name(name: str) -> bool:
    """Return whether the name of a file is the number of a batch: at most 19 digits, without a zero before it."""
    return name.isascii() and name.isdecimal() and len(name) <= 19 and (name == "0" or name[0] != "0")


def kafka_offset(text: str) -> KafkaSourceOffset | None:
    """Return the offset of a Kafka source; None if another source wrote the JSON.

    Raises:
        CheckpointError: the text is not JSON, or the offset of a Kafka source is damaged.
    """
    try:
        return KafkaSourceOffset.from_json(text)
    except CheckpointError:
        if _is_of_another_source(text):
            return None
        raise


def _is_of_another_source(text: str) -> bool:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if not isinstance(value, dict) or not value:
        # Sources with a counter have a number, sources of files and tables an object.
        return not isinstance(value, dict)
    return not all(
        isinstance(by_partition, dict) and by_partition and all(key.isdecimal() for key in by_partition)
        for by_partition in value.values()
    )


def known_time_ms(value: object) -> int | None:
    """Return a value of a file if it is a time from 1970 until the year 9999; otherwise None."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < _LATEST_MS else None


def rows_between(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Return the number of offsets between two positions, by partition; partitions in only one of them are left out.

    Offsets that were compacted away, aborted records and transaction markers are counted: the number is an upper bound
    of the records. It is negative where the end is before the start.
    """
    return {each: end[each] - start[each] for each in end if each in start}


def _has(numbers: Sequence[int], number: int) -> bool:
    place = bisect_left(numbers, number)
    return place < len(numbers) and numbers[place] == number
