"""The limit of a source's read in the next micro-batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


class ReadLimit:
    """The limit of the next micro-batch: the base of all limits, with Spark's factories.

    A source returns one from `SupportsAdmissionControl.getDefaultReadLimit`; the engine passes it, or `allAvailable()`
    where the trigger reads everything, to `latestOffset(start, limit)`. A source that cannot count in the unit of a
    limit may treat it as `allAvailable()`, and says so. Limits are values: they compare, hash and pickle.

    Runs on: driver.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.ReadLimit`.
    """

    __slots__ = ()

    @staticmethod
    def allAvailable() -> ReadAllAvailable:
        """Return the limit that reads everything that is there."""
        return ReadAllAvailable()

    @staticmethod
    def maxRows(rows: int) -> ReadMaxRows:
        """Return the limit of about `rows` rows for a micro-batch."""
        return ReadMaxRows(rows)

    @staticmethod
    def minRows(rows: int, maxTriggerDelayMs: int | None = None) -> ReadMinRows:
        """Return the limit that waits until `rows` rows are there, at most `maxTriggerDelayMs` ms; None: for ever."""
        return ReadMinRows(rows, maxTriggerDelayMs)

    @staticmethod
    def maxFiles(files: int) -> ReadMaxFiles:
        """Return the limit of `files` files for a micro-batch, for sources that read files."""
        return ReadMaxFiles(files)

    @staticmethod
    def maxBytes(size: int) -> ReadMaxBytes:
        """Return the limit of about `size` bytes for a micro-batch, as the source counts them."""
        return ReadMaxBytes(size)

    @staticmethod
    def compositeLimit(limits: Iterable[ReadLimit]) -> CompositeReadLimit:
        """Return several limits that apply together."""
        return CompositeReadLimit(tuple(limits))


@dataclass(frozen=True, slots=True)
class ReadAllAvailable(ReadLimit):
    """Read everything, whatever limits the options of the source set.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.ReadAllAvailable`.
    """


@dataclass(frozen=True, slots=True)
class ReadMaxRows(ReadLimit):
    """Read at most about `max_rows` rows.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.ReadMaxRows`.
    """

    max_rows: int


@dataclass(frozen=True, slots=True)
class ReadMaxFiles(ReadLimit):
    """Read at most `max_files` files.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.ReadMaxFiles`.
    """

    max_files: int


@dataclass(frozen=True, slots=True)
class ReadMaxBytes(ReadLimit):
    """Read at most about `max_bytes` bytes, as the source counts them.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.ReadMaxBytes`.
    """

    max_bytes: int


@dataclass(frozen=True, slots=True)
class ReadMinRows(ReadLimit):
    """Read nothing while fewer than `min_rows` rows wait, unless the last micro-batch is too long ago.

    Attributes:
        min_rows: rows, or what the source counts instead.
        max_trigger_delay_ms: after this time all waiting rows are read; None: there is no such time.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.ReadMinRows`.
    """

    min_rows: int
    max_trigger_delay_ms: int | None = None


@dataclass(frozen=True, slots=True)
class CompositeReadLimit(ReadLimit):
    """Several limits that apply together. `ReadAllAvailable` takes precedence over all others.

    Under PySpark, whose limits for Python sources have no composite, its first part represents the whole on the way
    through Spark; the source gets the whole.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.CompositeReadLimit`.
    """

    limits: tuple[ReadLimit, ...]
