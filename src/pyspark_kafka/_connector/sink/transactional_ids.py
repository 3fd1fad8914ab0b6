"""Transactional ids of sinks, tasks and lanes: how each is made up. Pure.

| of | id |
| --- | --- |
| an exactly-once sink | `kafka.transactional.id`, or `default_id` of its query or batch job |
| a task, with `exactlyOnceCommit=tasks` | `task_prefix`, then a random name (`tasks/ids.py` lends it) |
| a lane of a continuous query | `lane_id` |
"""

from __future__ import annotations

DEFAULT_PREFIX = "pyspark-kafka-"
"""The begin of each id, and of each group with positions, for which the user has set none."""


def default_id(owner: str) -> str:
    """Return the transactional id of a sink, or the name of a group with positions, if the user has set none.

    Args:
        owner: the id of the streaming query, or of the batch write's job.
    """
    return f"{DEFAULT_PREFIX}{owner}"


def task_prefix(sink_id: str, pool: str) -> str:
    """Return the begin of the transactional ids of a pool of tasks.

    Args:
        sink_id: the sink's.
        pool: of the planning (`tasks/transactions.py` `continue_pool`).
    """
    return f"{sink_id}-{pool}-"


def lane_prefix(sink_id: str) -> str:
    """Return the begin of the transactional ids of a continuous query's lanes."""
    return f"{sink_id}-"


def lane_id(sink_id: str, lane: int) -> str:
    """Return the transactional id of a lane."""
    return f"{lane_prefix(sink_id)}{lane}"
