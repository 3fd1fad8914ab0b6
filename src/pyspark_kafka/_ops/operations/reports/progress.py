"""Batches of a query from Spark's progress reports, in a session or in an event log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from pyspark_kafka._ops.operations.checkpoints.batches import known_time_ms
from pyspark_kafka._ops.operations.reports.timeline import BatchStats
from pyspark_kafka.errors import ConnectorError

_EVENT = "QueryProgressEvent"
# The whole of a trigger; the other phases are parts of it.
_WHOLE = "triggerExecution"
_MAX_LONG = 2**63 - 1


def progress_batches(progress: Iterable[Mapping[str, Any]], query_id: str | None = None) -> list[BatchStats]:
    """Return the batches of Spark's progress reports, in the order of their numbers.

    Of a repeated batch the last report counts. Triggers without a batch are left out.

    Args:
        progress: objects as `StreamingQuery.recentProgress` has them, read from JSON.
        query_id: the only query to return; None: all.

    Source: Spark `StreamingQueryProgress`.
    """
    found: dict[int, BatchStats] = {}
    for each in progress:
        try:
            if query_id is not None and each.get("id") != query_id:
                continue
            batch = _batch(each)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            # From another version, or cut: the others can still be shown.
            continue
        if batch is not None:
            found[batch.batch_id] = batch
    return [found[number] for number in sorted(found)]


def merge_batches(checkpoint: Sequence[BatchStats], progress: Sequence[BatchStats]) -> list[BatchStats]:
    """Return the batches of both, in the order of their numbers; progress takes precedence: it has more metrics.

    Only the checkpoint decides whether a batch is finished, and it has the rows of a progress without rows.
    """
    found = {each.batch_id: each for each in progress}
    for each in checkpoint:
        told = found.get(each.batch_id)
        found[each.batch_id] = (
            each
            if told is None
            else replace(
                told,
                rows=each.rows if told.rows is None else told.rows,
                is_finished=each.is_finished,
                is_passed_over=each.is_passed_over,
            )
        )
    return [found[number] for number in sorted(found)]


def read_event_log(lines: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    """Return the progress in lines of JSON: of Spark's event log, or one progress a line.

    Raises:
        ConnectorError: no line is JSON.

    Source: Spark `EventLogFileWriter`, `JsonProtocol`.
    """
    seen = readable = 0
    for line in lines:
        if not line.strip():
            continue
        seen += 1
        # Most lines of an event log are about tasks, and long.
        if _EVENT not in line and '"batchId"' not in line:
            readable += line.lstrip().startswith("{")
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            # The last line of a killed program.
            continue
        readable += 1
        if not isinstance(found, dict):
            continue
        told = found.get("progress", found) if str(found.get("Event", "")).endswith(_EVENT) else found
        if isinstance(told, dict) and "batchId" in told:
            yield told
    if seen and not readable:
        raise ConnectorError(
            f"The file has {seen} lines, and none of them is JSON: it is neither an event log of Spark nor progress of "
            "a query. No page was written.",
            condition="REPORT_PROGRESS_INVALID",
            hint="Pass an event log of Spark, a file or a directory, or a file with one progress of the query a line.",
        )


def _batch(progress: Mapping[str, Any]) -> BatchStats | None:
    durations = {str(name): _count(taken) for name, taken in (progress.get("durationMs") or {}).items()}
    said = _ms(progress.get("timestamp"))
    whole = durations.pop(_WHOLE, None)
    if whole is None:
        # An epoch of a continuous query is reported when it is committed.
        finished = said
        taken = progress.get("batchDuration")
        begun = None if said is None or taken is None else said - _count(taken)
    elif "addBatch" in durations:
        begun = said
        finished = None if said is None else said + whole
    else:
        # Spark also reports a trigger without new data, under the number of the next batch.
        return None
    return BatchStats(
        batch_id=_count(progress["batchId"]),
        begun_ms=known_time_ms(begun),
        finished_ms=known_time_ms(finished),
        is_finished=True,
        rows=_rows(progress),
        phases_ms=durations,
        run_id=str(progress["runId"]) if progress.get("runId") else None,
    )


def _rows(progress: Mapping[str, Any]) -> int | None:
    """Return the number of read rows; None if the progress does not have it.

    Spark's event log, and the progress of a client of Spark Connect, have the rows of each source and not their sum.
    """
    told = progress.get("numInputRows")
    if told is not None:
        return _count(told)
    sources = [each.get("numInputRows") for each in progress.get("sources") or ()]
    return None if not sources or None in sources else sum(map(_count, sources))


def _count(value: Any) -> int:
    """Return a number of a report; more than 64 bits raise ValueError."""
    number = int(value)
    if abs(number) > _MAX_LONG:
        raise ValueError
    return number


def _ms(text: object) -> int | None:
    if not isinstance(text, str):
        return None
    # Python 3.10 does not read a Z.
    found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return int(found.replace(tzinfo=found.tzinfo or timezone.utc).timestamp() * 1000)
