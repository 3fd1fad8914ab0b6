"""The text of transactions: rows, JSON, or words. Pure, except that the rows are printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_kafka._base.offsets import timestamp_text
from pyspark_kafka._ops.cli.common.output import TableColumn, print_rows
from pyspark_kafka._ops.operations.text import span_text
from pyspark_kafka.errors import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.transactions.inspection import TransactionDescription
    from pyspark_kafka._connector.sink.commit_marker import CommitMarker

_COLUMNS = [
    TableColumn(name, style="bold" if name == "transactional id" else "")
    for name in ("transactional id", "state", "producer", "coordinator", "open since", "timeout", "topic-partitions")
]
_SHOWN_TOPICS = 10
_SHOWN_RANGES = 10


def print_transactions(
    found: list[TransactionDescription],
    now_ms: int,
    markers: dict[str, CommitMarker] | None,
    console: Console | None = None,
) -> None:
    """Print transactions, one a row."""
    columns = _COLUMNS if markers is None else [*_COLUMNS, TableColumn("owner")]
    print_rows(columns, [_cells(each, now_ms, markers) for each in found], console)


def to_json(each: TransactionDescription, now_ms: int, markers: dict[str, CommitMarker] | None) -> dict[str, Any]:
    """Return a transaction as values for JSON. Its keys are public."""
    told: dict[str, Any] = {
        "transactional_id": each.transactional_id,
        "state": each.state.value,
        "open": each.state.is_open,
        "producer_id": each.producer_id,
        "producer_epoch": each.producer_epoch,
        "coordinator_id": each.coordinator_id,
        "coordinator": each.coordinator,
        "began_at_ms": each.began_at_ms,
        "open_for_ms": open_for_ms(each, now_ms),
        "timeout_ms": each.timeout_ms,
        "topic_partitions": [{"topic": where.topic, "partition": where.partition} for where in each.partitions],
    }
    if markers is not None:
        marker = markers.get(each.transactional_id)
        told["last_committed"] = marker and {
            "query_id": marker.query_id,
            "batch_id": marker.batch_id,
            "committed_at_ms": marker.committed_at_ms,
        }
    return told


def partitions_text(partitions: Iterable[TopicPartition]) -> list[str]:
    """Return topic-partitions for people, one text a topic, neighbours as ranges; long lists are cut and counted.

    Args:
        partitions: in ascending order.
    """
    by_topic: dict[str, list[int]] = {}
    for where in partitions:
        by_topic.setdefault(where.topic, []).append(where.partition)
    lines = [f"{printable(topic)} {_ranges(numbers)}" for topic, numbers in list(by_topic.items())[:_SHOWN_TOPICS]]
    if len(by_topic) > _SHOWN_TOPICS:
        lines.append(f"… and {len(by_topic) - _SHOWN_TOPICS} more topics")
    return lines


def open_for_ms(found: TransactionDescription, now_ms: int) -> int | None:
    """Return the time since its begin by this machine's clock; None if it is ended. The broker's may differ."""
    if found.began_at_ms is None or not found.state.is_open:
        return None
    return max(0, now_ms - found.began_at_ms)


def since_text(found: TransactionDescription, now_ms: int) -> str:
    """Return since when a transaction has been open, and for how long; a dash if it has ended."""
    age_ms = open_for_ms(found, now_ms)
    if age_ms is None or found.began_at_ms is None:
        return "-"
    return f"{timestamp_text(found.began_at_ms)} ({span_text(age_ms)})"


def producer_text(found: TransactionDescription) -> str:
    """Return the producer id and the epoch."""
    return f"{found.producer_id}, epoch {found.producer_epoch}"


def owner_text(marker: CommitMarker | None) -> str:
    """Return the query that wrote a commit marker, and its last micro-batch."""
    if marker is None:
        return "no commit marker"
    return (
        f"query {printable(marker.query_id)}, last committed batch {marker.batch_id} at "
        f"{timestamp_text(marker.committed_at_ms)}"
    )


def _cells(each: TransactionDescription, now_ms: int, markers: dict[str, CommitMarker] | None) -> list[str]:
    cells = [
        printable(each.transactional_id),
        each.state.value,
        producer_text(each),
        f"{each.coordinator_id} ({printable(each.coordinator)})",
        since_text(each, now_ms),
        span_text(each.timeout_ms),
        "\n".join(partitions_text(each.partitions)),
    ]
    return cells if markers is None else [*cells, owner_text(markers.get(each.transactional_id))]


def _ranges(numbers: list[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    shown = ", ".join("-".join(map(str, run)) for run in runs[:_SHOWN_RANGES])
    return shown if len(runs) <= _SHOWN_RANGES else f"{shown} … of {len(numbers)}"
