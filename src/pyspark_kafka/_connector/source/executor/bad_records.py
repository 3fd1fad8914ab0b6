"""Records with an unreadable key or value: counted, logged, or an error. Pure."""

from __future__ import annotations

import logging
import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from pyspark_kafka._typed.codecs.values import Reason
from pyspark_kafka.errors import RecordError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark_kafka._base.model import TopicPartition

_LOG = logging.getLogger(__name__)

# The number of bad records that an error or a line of the log names.
_NAMED = 5
# A ratio of fewer records means little, except at the end.
_MIN_JUDGED = 100
# The interval of log lines about dropped records in long tasks; other tasks log once, at their end.
_LOG_EVERY_S = 60.0
_FRAMING = "Check option '{column}Framing': it must be what the writers of the topic use, often none."
# The first advice, by reason.
_HINTS = {
    Reason.INCOMPLETE_HEADER.value: _FRAMING,
    Reason.INVALID_MAGIC_BYTE.value: _FRAMING,
    Reason.SCHEMA_ID_NOT_FOUND.value: "Check that option 'schema.registry.url' names the registry of the topic's "
    "writers, and that '{column}Framing' is what they use.",
    Reason.RESOLUTION_FAILED.value: "Use a '{column}Schema' or '{column}SchemaVersion' that all writers' schemas can "
    "be read as: new fields have a default, and types are only widened.",
    Reason.DECODE_FAILED.value: "Check '{column}Format', '{column}Framing' and '{column}Schema'; if other records "
    "can be read, the fault is in this record.",
    Reason.TYPE_MISMATCH.value: "Correct the type in '{column}Schema', or leave the field out of it.",
}
_KEEP = " Set mode to PERMISSIVE to get such records in a column of their own, or to DROPMALFORMED to leave them out."


class BadRecord(NamedTuple):
    """A record with an unreadable key or value.

    Attributes:
        row: its row in the batch that it was decoded in.
        column: `key` if the key is bad, which is read first, else `value`.
        reason: the kind of fault, one of `codecs.values.Reason`.
        message: the fault, as the end of a sentence, without content of the record.
        schema_id: the id of its writer schema, as the record has it; None without an id.
    """

    row: int
    column: str
    reason: str
    message: str
    schema_id: str | None

    def describe(self, offset: int) -> str:
        """Return offset, column and fault."""
        schema = f" with schema {self.schema_id}" if self.schema_id is not None else ""
        return f"offset {offset} ({self.column}{schema}, {self.reason}: {self.message})"


class BadRecords:
    """Counts the records of a task and its bad records, and raises if there are too many bad ones.

    Mode FAILFAST allows none. `maxCorruptRatio` limits the share of bad records in all records that the task has read.
    It is checked from 100 records on, and at the end of the task. Mode DROPMALFORMED logs one line for a
    task, with the number and the first bad records, and about one line a minute for a longer task.

    Runs on: executor, one for a reader; memory of some lines.

    Args:
        mode: FAILFAST, PERMISSIVE or DROPMALFORMED.
        max_ratio: the maximum share of bad records; 1.0: no limit.
        formats: the formats of the typed columns by name, for errors.
        clock: monotonic seconds.

    Attributes:
        records: the number of counted records.
        bad: the number of bad ones among them.
    """

    def __init__(
        self,
        mode: str,
        max_ratio: float,
        formats: Mapping[str, str],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._mode = mode
        self._max_ratio = max_ratio
        self._formats = formats
        self._clock = clock
        self.records = self.bad = 0
        self._reasons: Counter[str] = Counter()
        self._first: list[str] = []
        # Of records that are not logged yet.
        self._unlogged, self._unlogged_of, self._unlogged_first = 0, 0, list[str]()
        self._logged_at = clock()

    def count_records(
        self, topic_partition: TopicPartition, rows: int, bad: Sequence[BadRecord], offset_of: Callable[[int], int]
    ) -> None:
        """Count a batch.

        Args:
            topic_partition: the topic-partition of its records.
            rows: the number of its records.
            bad: its bad records, in the order of their rows.
            offset_of: returns the offset of a row.

        Raises:
            RecordError: a record is bad in mode FAILFAST, or too many are.
        """
        self.records += rows
        if bad:
            if self._mode == "FAILFAST":
                raise self._refused(topic_partition, bad[0], offset_of(bad[0].row))
            self.bad += len(bad)
            self._reasons.update(each.reason for each in bad)
            self._note(self._first, topic_partition, bad, offset_of)
            if self._mode == "DROPMALFORMED":
                self._unlogged += len(bad)
                self._note(self._unlogged_first, topic_partition, bad, offset_of)
        if self.records >= _MIN_JUDGED:
            self.judge_ratio()
        if self._unlogged and self._clock() >= self._logged_at + _LOG_EVERY_S:
            self.log()

    def judge_ratio(self) -> None:
        """Raise if too many records are bad; called at the end, even with few records.

        Raises:
            RecordError: the share is larger than `maxCorruptRatio`.
        """
        if self.bad <= self._max_ratio * self.records:
            return
        reason, times = self._reasons.most_common(1)[0]
        raise RecordError(
            f"{self.bad:,} of {self.records:,} records that this task has read are bad, a ratio of "
            f"{self.bad / self.records:.4g}; option 'maxCorruptRatio' allows {self._max_ratio:g}. The most frequent "
            f"reason is {reason}, {times:,} times. The first: {self._listed(self._first, self.bad)}. The task fails, "
            "and nothing of the batch is committed.",
            condition="TOO_MANY_BAD_RECORDS",
            hint="If most records are bad, check the options of format, wire format and schema; if they are correct, "
            "raise maxCorruptRatio.",
            parameters={"bad": self.bad, "records": self.records, "max_ratio": self._max_ratio, "reason": reason},
        )

    def log(self) -> None:
        """Log the records that were dropped since the last line, if there are some."""
        if not self._unlogged:
            return
        _LOG.warning(
            "%d of %d records that this task has read are bad and were left out, because 'mode' is DROPMALFORMED; "
            "%d of them since the last such line: %s.",
            self.bad,
            self.records,
            self._unlogged,
            self._listed(self._unlogged_first, self._unlogged),
        )
        self._unlogged, self._unlogged_first = 0, []
        self._logged_at = self._clock()

    def _note(
        self,
        first: list[str],
        topic_partition: TopicPartition,
        bad: Sequence[BadRecord],
        offset_of: Callable[[int], int],
    ) -> None:
        first += [f"{topic_partition} {each.describe(offset_of(each.row))}" for each in bad[: _NAMED - len(first)]]

    def _listed(self, first: Sequence[str], count: int) -> str:
        more = f", and {count - len(first):,} more" if count > len(first) else ""
        return f"{', '.join(first)}{more}"

    def _refused(self, topic_partition: TopicPartition, bad: BadRecord, offset: int) -> RecordError:
        schema = "" if bad.schema_id is None else f" with schema {bad.schema_id}"
        return RecordError(
            f"The {bad.column} of the record at offset {offset} of {topic_partition}, topic '{topic_partition.topic}', "
            f"partition {topic_partition.partition}, cannot be read as {self._formats[bad.column]}{schema}: "
            f"{bad.reason}: {bad.message}. The task fails, because 'mode' is FAILFAST, and nothing of the batch is "
            "committed.",
            condition="BAD_RECORD",
            hint=_HINTS[bad.reason].format(column=bad.column) + _KEEP,
            parameters={
                "topic": topic_partition.topic,
                "partition": topic_partition.partition,
                "offset": offset,
                "column": bad.column,
                "reason": bad.reason,
                **({} if bad.schema_id is None else {"schema_id": bad.schema_id}),
            },
        )
