"""The client id of requests if option `kafka.client.id` is not set: this package, and the task that sends them.

`_connector/spark/processes/process_log.py` names each task. Brokers have the id in their request logs, metrics and
quotas. Of one process, because a Python worker runs one task at a time, and because connections outlive tasks.
"""

from __future__ import annotations

_PACKAGE = "pyspark-kafka"
# Of a UUID: enough to find the query in Spark's pages, short enough for the name of a metric.
_ID_LENGTH = 8

_current = _PACKAGE


def name_requests(
    *, query_id: str | None = None, run_id: str | None = None, stage: int | None = None, task: int
) -> None:
    """Name the requests of this process from now on: `pyspark-kafka-q8c0e91aa-r53f2c001-t3`.

    The number of names is bounded by queries, runs and tasks of a stage: brokers keep a metric for each name with a
    quota for an hour.

    Args:
        query_id: of the task's query; None in a batch job.
        run_id: of this start of the query.
        stage: of a task without a query, which has no other name.
        task: the number of the task within its stage, from 0; not the attempt.
    """
    global _current  # noqa: PLW0603 - of this process
    parts = [_PACKAGE]
    if query_id:
        parts.append(f"q{query_id[:_ID_LENGTH]}")
    elif stage is not None:
        parts.append(f"s{stage}")
    if run_id:
        parts.append(f"r{run_id[:_ID_LENGTH]}")
    _current = "-".join([*parts, f"t{task}"])


def forget_task() -> None:
    """Name the requests of this process after the package alone: no task sends them."""
    global _current  # noqa: PLW0603 - of this process
    _current = _PACKAGE


def current_client_id() -> str:
    """Return the client id of a request that is sent now."""
    return _current
