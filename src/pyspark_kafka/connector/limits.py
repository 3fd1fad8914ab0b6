"""How much an engine lets a source take into the next batch."""

from __future__ import annotations

from dataclasses import dataclass


class ReadLimit:
    """The base of the limits an engine hands to `SupportsAdmissionControl.latestOffset`.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.ReadLimit`.
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ReadAllAvailable(ReadLimit):
    """Take all there is, whatever limits the source's own options set."""


@dataclass(frozen=True, slots=True)
class ReadMaxRows(ReadLimit):
    """Take about `max_rows` rows at the most."""

    max_rows: int


@dataclass(frozen=True, slots=True)
class ReadMaxBytes(ReadLimit):
    """Take about `max_bytes` bytes at the most, as the source counts them.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.ReadMaxBytes`.
    """

    max_bytes: int


@dataclass(frozen=True, slots=True)
class ReadMinRows(ReadLimit):
    """Take nothing as long as fewer than `min_rows` rows wait, and the last batch is not too long ago.

    Attributes:
        min_rows: rows, or what the source counts instead.
        max_trigger_delay_ms: after so long whatever waits is taken; None: there is no such time.
    """

    min_rows: int
    max_trigger_delay_ms: int | None = None


@dataclass(frozen=True, slots=True)
class CompositeReadLimit(ReadLimit):
    """Several limits that hold together. `ReadAllAvailable` among them goes before all others.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.CompositeReadLimit`.
    """

    limits: tuple[ReadLimit, ...]
