"""The work of `pyspark-kafka transactions list` and `abort`. Layer: cli."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pyspark_kafka.cli.connection_options import resolve_connection
from pyspark_kafka.client.cluster.kafka_client import KafkaClient
from pyspark_kafka.client.transactions.inspection import TransactionState, describe_transaction
from pyspark_kafka.client.transactions.inspection import list_transactions as fetch_transactions
from pyspark_kafka.client.transactions.owner import TransactionalId
from pyspark_kafka.errors import DeadlineError, TransportError
from pyspark_kafka.offsets import timestamp_text
from pyspark_kafka.sink.driver.marker_topic import MarkerTopic

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark_kafka.client.transactions.inspection import TransactionDescription
    from pyspark_kafka.model import TopicPartition
    from pyspark_kafka.sink.commit_marker import CommitMarker

DONE, NOTHING_DONE = 0, 1

# The largest timeout that fencing registers for the id; its owner sets its own again.
_TAKEOVER_TIMEOUT_MS = 60_000
_NO_EDGE = 100_000
_SHOWN_TOPICS = 10
_SHOWN_RANGES = 10
_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000))
_DECIDED = {
    TransactionState.PREPARE_COMMIT: "It is being committed already; its markers are not written yet.",
    TransactionState.PREPARE_ABORT: "It is being aborted already; its markers are not written yet.",
    TransactionState.PREPARE_EPOCH_FENCE: "It is being aborted already; its owner is being fenced.",
}


def list_transactions(
    servers: str | None,
    config: Path | None,
    *,
    prefix: str,
    longer_ms: int | None,
    every: bool,
    commit_topic: str | None,
    as_json: bool,
) -> int:
    """Print the transactions; return the exit code.

    Raises:
        ConnectorError: the brokers cannot be asked, or refuse.
    """
    with _connect(servers, config) as client:
        found = fetch_transactions(client, prefix=prefix, open_only=not every)
        now_ms = _now_ms()
        if longer_ms is not None:
            found = [each for each in found if (_open_for_ms(each, now_ms) or 0) >= longer_ms]
        markers = _markers(client, commit_topic, found)
    if as_json:
        typer.echo(json.dumps([_to_json(each, now_ms, markers) for each in found], indent=2))
    elif found:
        _print_table(found, now_ms, markers, Console())
    else:
        what = "No transaction" if every else "No open transaction"
        with_prefix = f" of an id that begins with '{printable(prefix)}'" if prefix else ""
        since = "" if longer_ms is None else f" for longer than {duration_text(longer_ms)}"
        _say(f"{what}{with_prefix}{since}, among the transactional ids that this user may describe.")
    return DONE


def abort_transaction(
    servers: str | None, config: Path | None, transactional_id: str, *, commit_topic: str | None, ask: bool
) -> int:
    """Show the open transaction of an id, ask, and abort it by fencing its owner; return the exit code.

    Raises:
        ConnectorError: the brokers cannot be asked, or refuse.
    """
    name = printable(transactional_id)
    with _connect(servers, config) as client:
        # Describe it first: fencing an id that does not exist would create it.
        found = describe_transaction(client, transactional_id)
        if found is None:
            _say(f"The transactional id '{name}' is not known to its coordinator. Nothing was done.")
            return NOTHING_DONE
        if not _abortable(found):
            return NOTHING_DONE
        now_ms = _now_ms()
        _describe(found, now_ms, _markers(client, commit_topic, [found]))
        if ask and not _confirmed():
            _say("Nothing was done.")
            return NOTHING_DONE
        # The user may take a while to confirm, and the owner does not wait for that.
        seen = found
        found = describe_transaction(client, transactional_id)
        if found is None or not seen.same_transaction(found):
            state = "gone" if found is None else f"state {found.state}, epoch {found.producer_epoch}"
            _say(f"The transaction has changed meanwhile (now: {state}). Nothing was done; list it again.")
            return NOTHING_DONE
        owner = TransactionalId(client, transactional_id, min(found.timeout_ms, _TAKEOVER_TIMEOUT_MS))
        try:
            owner.fence()
        except (DeadlineError, TransportError) as error:
            raise error.located(
                "The abort may be decided already and take effect soon; `pyspark-kafka transactions list` shows it"
            ) from error
    _say(
        f"The transaction of '{name}' is aborted: readers with read_committed continue, and never see its records.\n"
        "Its owner is fenced: what it writes next fails, with INVALID_PRODUCER_EPOCH or the like. An exactly-once "
        "query of pyspark-kafka then writes its batch again automatically; another program may have to be restarted."
    )
    return DONE


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


def _ranges(numbers: list[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    shown = ", ".join("-".join(map(str, run)) for run in runs[:_SHOWN_RANGES])
    return shown if len(runs) <= _SHOWN_RANGES else f"{shown} … of {len(numbers)}"


def _connect(servers: str | None, config: Path | None) -> KafkaClient:
    options, notes = resolve_connection(servers, config)
    for note in notes:
        Console(stderr=True, soft_wrap=True).print(note, style="yellow", markup=False, highlight=False)
    return KafkaClient(options)


def _markers(
    client: KafkaClient, commit_topic: str | None, found: Iterable[TransactionDescription]
) -> dict[str, CommitMarker] | None:
    if commit_topic is None:
        return None
    return MarkerTopic(client, commit_topic, 0).glance([each.transactional_id for each in found])


def _abortable(found: TransactionDescription) -> bool:
    name = printable(found.transactional_id)
    if found.state is TransactionState.ONGOING:
        return True
    if not found.state.is_open:
        _say(f"The transactional id '{name}' has no open transaction (state {found.state}). Nothing was done.")
    else:
        reason = _DECIDED.get(found.state, "This version of pyspark-kafka does not know the state.")
        _say(f"The transaction of '{name}' is not aborted (state {found.state}). {reason} Nothing was done.")
    return False


def _describe(found: TransactionDescription, now_ms: int, markers: dict[str, CommitMarker] | None) -> None:
    _say(
        f"Transaction of '{printable(found.transactional_id)}': state {found.state}, producer {_producer(found)}, "
        f"open since {_since(found, now_ms)}, timeout {duration_text(found.timeout_ms)}, coordinator "
        f"{found.coordinator_id} ({found.coordinator})."
    )
    held = "; ".join(partitions_text(found.partitions)) or "no partition that this user may describe"
    _say(f"It holds {held}.")
    if markers is not None:
        _say(f"Its owner: {_query(markers.get(found.transactional_id))}.")


def _confirmed() -> bool:
    try:
        return typer.confirm("Abort it, and fence its owner?")
    except typer.Abort:
        # Ctrl-C, or nobody there to ask; click's own word for it is "Aborted!".
        typer.echo()
        return False


def _print_table(
    found: list[TransactionDescription], now_ms: int, markers: dict[str, CommitMarker] | None, console: Console
) -> None:
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


def _cells(each: TransactionDescription, now_ms: int, markers: dict[str, CommitMarker] | None) -> list[str]:
    cells = [
        printable(each.transactional_id),
        each.state.value,
        _producer(each),
        f"{each.coordinator_id} ({each.coordinator})",
        _since(each, now_ms),
        duration_text(each.timeout_ms),
        "\n".join(partitions_text(each.partitions)),
    ]
    return cells if markers is None else [*cells, _query(markers.get(each.transactional_id))]


def _to_json(each: TransactionDescription, now_ms: int, markers: dict[str, CommitMarker] | None) -> dict[str, Any]:
    told: dict[str, Any] = {
        "transactional_id": each.transactional_id,
        "state": each.state.value,
        "open": each.state.is_open,
        "producer_id": each.producer_id,
        "producer_epoch": each.producer_epoch,
        "coordinator_id": each.coordinator_id,
        "coordinator": each.coordinator,
        "began_at_ms": each.began_at_ms,
        "open_for_ms": _open_for_ms(each, now_ms),
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


def _producer(found: TransactionDescription) -> str:
    return f"{found.producer_id}, epoch {found.producer_epoch}"


def _open_for_ms(found: TransactionDescription, now_ms: int) -> int | None:
    """Return how long it is open by this machine's clock; None where it is ended. The broker's may differ a little."""
    if found.began_at_ms is None or not found.state.is_open:
        return None
    return max(0, now_ms - found.began_at_ms)


def _since(found: TransactionDescription, now_ms: int) -> str:
    age_ms = _open_for_ms(found, now_ms)
    if age_ms is None or found.began_at_ms is None:
        return "-"
    return f"{timestamp_text(found.began_at_ms)} ({duration_text(age_ms)})"


def _query(marker: CommitMarker | None) -> str:
    if marker is None:
        return "no commit marker"
    return (
        f"query {printable(marker.query_id)}, last committed batch {marker.batch_id} at "
        f"{timestamp_text(marker.committed_at_ms)}"
    )


def _say(text: str) -> None:
    Console(soft_wrap=True).print(text, markup=False, highlight=False)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
