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
