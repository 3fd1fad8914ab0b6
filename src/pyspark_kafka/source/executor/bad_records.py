"""What becomes of records whose key or value cannot be read: counted, logged, an error. Pure."""

from __future__ import annotations

import logging
import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from pyspark_kafka.counters import BAD_RECORDS, COUNTERS, DROPPED_RECORDS
from pyspark_kafka.errors import RecordError
from pyspark_kafka.formats.values import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark_kafka.model import TopicPartition

_LOG = logging.getLogger(__name__)

# The number of bad records that an error or a line of the log names.
_NAMED = 5
# A ratio of fewer records than this says little, except at the end.
_MIN_JUDGED = 100
# A task that runs for long logs about this often what it left out; others once, at their end.
_LOG_EVERY_S = 60.0
_FRAMING = "Check option '{column}Framing': it must be what the writers of the topic use, often none."
# What to do first, by reason.
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
    """A record whose key or value cannot be read.

    Attributes:
        row: its row in the batch that it was decoded in.
        column: `key` if the key is bad, which is read first, else `value`.
        reason: the kind of fault, one of `formats.values.Reason`.
        message: the fault, as the end of a sentence; it repeats nothing of the record.
        schema_id: the id of the schema that it says it was written with; None if it says none.
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
    """Counts the records of a task and the bad ones, and raises where there must be none, or fewer.

    Mode FAILFAST has none. `maxCorruptRatio` bounds the part that is bad of all records that the task has read: it is
    judged from 100 records on, and at the end of what the task reads. Mode DROPMALFORMED is logged: one line for a
    task, with the number and the first ones; about one line a minute for a task that runs for longer.

    Runs on: executor, one for a reader; memory of some lines.

    Args:
        mode: FAILFAST, PERMISSIVE or DROPMALFORMED.
        max_ratio: the largest part that may be bad; 1.0: any.
        formats: the formats of the typed columns by name, for errors.
        clock: monotonic seconds.

    Attributes:
        records: how many records were judged.
        bad: how many of them are bad.
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
        # Of what is not logged yet.
        self._unlogged, self._unlogged_of, self._unlogged_first = 0, 0, list[str]()
        self._logged_at = clock()

    def take(
        self, topic_partition: TopicPartition, rows: int, bad: Sequence[BadRecord], offset_of: Callable[[int], int]
    ) -> None:
        """Count a batch.

        Args:
            topic_partition: what its records are of.
            rows: how many records it has.
            bad: those of them that are bad, in the order of their rows.
            offset_of: returns the offset of a row.

        Raises:
            RecordError: a record is bad in mode FAILFAST, or too many are.
        """
        self.records += rows
        if bad:
            COUNTERS.add(BAD_RECORDS, 1 if self._mode == "FAILFAST" else len(bad))
            if self._mode == "FAILFAST":
                raise self._refused(topic_partition, bad[0], offset_of(bad[0].row))
            self.bad += len(bad)
            self._reasons.update(each.reason for each in bad)
            self._note(self._first, topic_partition, bad, offset_of)
            if self._mode == "DROPMALFORMED":
                self._unlogged += len(bad)
                COUNTERS.add(DROPPED_RECORDS, len(bad))
                self._note(self._unlogged_first, topic_partition, bad, offset_of)
        if self.records >= _MIN_JUDGED:
            self.judge()
        if self._unlogged and self._clock() >= self._logged_at + _LOG_EVERY_S:
            self.log()

    def judge(self) -> None:
        """Raise if too large a part of the records is bad; called at the end, however few there are.

        Raises:
            RecordError: the part is larger than `maxCorruptRatio`.
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
        """Log what was left out since the last line; nothing if nothing was."""
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
