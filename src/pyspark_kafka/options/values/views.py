"""The options of a view: rows about topics instead of their records. Layer: options.values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka.model import IsolationLevel

if TYPE_CHECKING:
    from pyspark_kafka.options.values.connection import ConnectionOptions


@dataclass(frozen=True, slots=True)
class LagViewOptions:
    """How far positions are behind, as rows.

    Attributes:
        connection: how to reach the cluster.
        view: always `lag`.
        lag_checkpoint: the checkpoint whose positions are measured; None: those of the group.
        lag_group: the consumer group whose positions are measured; None: those of the checkpoint.
        topics: only these; empty: all that there are positions of.
        isolation_level: what counts as the end of a log.
        notes: sentences for the user's log: options without effect.
    """

    connection: ConnectionOptions
    view: str = ""
    lag_checkpoint: str | None = None
    lag_group: str | None = None
    topics: tuple[str, ...] = ()
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    notes: tuple[str, ...] = ()
