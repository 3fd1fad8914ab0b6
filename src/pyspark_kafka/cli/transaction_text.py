"""How transactions are shown: as a table, as JSON, as words. Pure, except that the table is printed. Layer: cli."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from pyspark_kafka.offsets import timestamp_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from pyspark_kafka.client.transactions.inspection import TransactionDescription
    from pyspark_kafka.model import TopicPartition
    from pyspark_kafka.sink.commit_marker import CommitMarker

# Wider than any table.
_NO_EDGE = 100_000
_SHOWN_TOPICS = 10
_SHOWN_RANGES = 10
_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000))


def print_table(
    found: list[TransactionDescription], now_ms: int, markers: dict[str, CommitMarker] | None, console: Console
) -> None:
    """Print transactions as a table, or as blocks of lines if a terminal is too narrow for the table."""
    names = ["transactional id", "state", "producer", "coordinator", "open since", "timeout", "topic-partitions"]
    names += [] if markers is None else ["owner"]
    rows = [_cells(each, now_ms, markers) for each in found]
    table = Table(*names)
    for row in rows:
        table.add_row(*map(Text, row))
    width = console.measure(table, options=console.options.update(max_width=_NO_EDGE)).maximum
    # A pipe has no edge to fold at, and whole words can be searched for.
    if width <= console.width or not console.is_terminal:
        console.width = max(console.width, width)
        console.print(table)
        return
    # Folded cells could not be copied, so they are printed one below the other.
    for row in rows:
        block = Table.grid(padding=(0, 2))
        for name, cell in zip(names[1:], row[1:], strict=True):
            block.add_row(Text(f"  {name}"), Text(cell, overflow="fold"))
        console.print(Text(row[0]), soft_wrap=True, style="bold")
        console.print(block)


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


def duration_text(ms: int) -> str:
    """Return a time span for people, in its two largest units.

    Example:
        >>> duration_text(7_384_000), duration_text(60_000), duration_text(250)
        ('2 h 3 m', '1 m', '0.2 s')
    """
    if ms < 1_000:
        return f"{ms // 100 / 10:g} s"
    first = next(index for index, (_, size) in enumerate(_UNITS) if ms >= size)
    parts = []
    for unit, size in _UNITS[first : first + 2]:
        count, ms = divmod(ms, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts)


def partitions_text(partitions: Iterable[TopicPartition]) -> list[str]:
    """Return topic-partitions for people, one text a topic, neighbours as ranges; long lists are cut and counted.

    Args:
        partitions: in ascending order.
    """
    by_topic: dict[str, list[int]] = {}
    for where in partitions:
        by_topic.setdefault(where.topic, []).append(where.partition)
    lines = [f"{topic} {_ranges(numbers)}" for topic, numbers in list(by_topic.items())[:_SHOWN_TOPICS]]
    if len(by_topic) > _SHOWN_TOPICS:
        lines.append(f"… and {len(by_topic) - _SHOWN_TOPICS} more topics")
    return lines


def printable(text: str) -> str:
    """Return a text of the cluster as a terminal may show it: control characters as their escapes."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def open_for_ms(found: TransactionDescription, now_ms: int) -> int | None:
    """Return how long it is open by this machine's clock; None where it is ended. The broker's may differ a little."""
    if found.began_at_ms is None or not found.state.is_open:
        return None
    return max(0, now_ms - found.began_at_ms)


def since_text(found: TransactionDescription, now_ms: int) -> str:
    """Return since when a transaction has been open, and for how long; a dash if it has ended."""
    age_ms = open_for_ms(found, now_ms)
    if age_ms is None or found.began_at_ms is None:
        return "-"
    return f"{timestamp_text(found.began_at_ms)} ({duration_text(age_ms)})"


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
        f"{each.coordinator_id} ({each.coordinator})",
        since_text(each, now_ms),
        duration_text(each.timeout_ms),
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
