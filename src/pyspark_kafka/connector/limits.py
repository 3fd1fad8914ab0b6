"""How much an engine lets a source read in the next micro-batch. Layer: connector."""

from __future__ import annotations

from dataclasses import dataclass


class ReadLimit:
    """The base of the limits that an engine passes to `SupportsAdmissionControl.latestOffset`.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.ReadLimit`.
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ReadAllAvailable(ReadLimit):
    """Read everything, whatever limits the options of the source set."""


@dataclass(frozen=True, slots=True)
class ReadMaxRows(ReadLimit):
    """Read at most about `max_rows` rows."""

    max_rows: int


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
    """

    min_rows: int
    max_trigger_delay_ms: int | None = None


@dataclass(frozen=True, slots=True)
class CompositeReadLimit(ReadLimit):
    """Several limits that apply together. `ReadAllAvailable` takes precedence over all others.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.CompositeReadLimit`.
    """

    limits: tuple[ReadLimit, ...]
