"""The work of `pyspark-kafka transactions list`, `abort` and `resolve`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import typer

from pyspark_kafka._client.client.transactions.inspection import TransactionState, describe_transaction
from pyspark_kafka._client.client.transactions.inspection import list_transactions as fetch_transactions
from pyspark_kafka._client.client.transactions.owner import TransactionalId
from pyspark_kafka._client.options import ExactlyOnceOptions, WriteOptions
from pyspark_kafka._connector.sink.commit_marker import incomplete, lost_places
from pyspark_kafka._connector.sink.driver.commit_topic import CommitTopic
from pyspark_kafka._connector.sink.driver.marker_reader import MarkerReader
from pyspark_kafka._connector.sink.driver.tasks.commit_calls import BrokerTaskCommitCalls
from pyspark_kafka._connector.sink.driver.tasks.commits import TaskCommits
from pyspark_kafka._ops.cli.common.arguments import connect
from pyspark_kafka._ops.cli.common.heartbeat import progress
from pyspark_kafka._ops.cli.common.outcome import ExitStatus
from pyspark_kafka._ops.cli.common.output import print_json, say
from pyspark_kafka._ops.cli.transactions.text import (
    open_for_ms,
    owner_text,
    partitions_text,
    print_transactions,
    producer_text,
    since_text,
    to_json,
)
from pyspark_kafka._ops.operations.text import span_text
from pyspark_kafka.errors import DeadlineError, TransportError, printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.transactions.inspection import TransactionDescription
    from pyspark_kafka._connector.sink.commit_marker import CommitMarker
    from pyspark_kafka._ops.cli.common.arguments import Where

# There is nothing that could be aborted, or the user has said no.
_NOTHING_DONE = ExitStatus.FINDING

# The largest timeout that fencing registers for the id; its owner sets its own again.
_TAKEOVER_TIMEOUT_MS = 60_000
_DECIDED = {
    TransactionState.PREPARE_COMMIT: "It is being committed already; its markers are not written yet.",
    TransactionState.PREPARE_ABORT: "It is being aborted already; its markers are not written yet.",
    TransactionState.PREPARE_EPOCH_FENCE: "It is being aborted already; its owner is being fenced.",
}


def list_transactions(
    where: Where,
    *,
    prefix: str,
    longer_ms: int | None,
    every: bool,
    commit_topic: str | None,
    as_json: bool,
) -> ExitStatus:
    """Print the transactions; return the exit code.

    Raises:
        ConnectorError: the brokers cannot be reached, or refuse.
    """
    with connect(where) as client, progress("Listing transactions"):
        found = fetch_transactions(client, prefix=prefix, open_only=not every)
        now_ms = _now_ms()
        if longer_ms is not None:
            found = [each for each in found if (open_for_ms(each, now_ms) or 0) >= longer_ms]
        markers = _markers_of(client, commit_topic, found)
    if as_json:
        print_json([to_json(each, now_ms, markers) for each in found])
    elif found:
        print_transactions(found, now_ms, markers)
    else:
        what = "No transaction" if every else "No open transaction"
        with_prefix = f" of an id that begins with '{printable(prefix)}'" if prefix else ""
        since = "" if longer_ms is None else f" for longer than {span_text(longer_ms)}"
        say(f"{what}{with_prefix}{since}, among the transactional ids that this user may describe.")
    return ExitStatus.WELL


def abort_transaction(where: Where, transactional_id: str, *, commit_topic: str | None, ask: bool) -> ExitStatus:
    """Show the open transaction of an id, prompt, and abort it by fencing its owner; return the exit code.

    Raises:
        ConnectorError: the brokers cannot be reached, or refuse.
    """
    name = printable(transactional_id)
    with connect(where) as client:
        # Describe it first: fencing an id that does not exist would create it.
        found = describe_transaction(client, transactional_id)
        if found is None:
            say(f"The transactional id '{name}' is not known to its coordinator. Nothing was done.")
            return _NOTHING_DONE
        if not _abortable(found):
            return _NOTHING_DONE
        now_ms = _now_ms()
        _describe(found, now_ms, _markers_of(client, commit_topic, [found]))
        if ask and not _confirmed("Abort it, and fence its owner?"):
            say("Nothing was done.")
            return _NOTHING_DONE
        # The user may take a while to confirm, and the owner does not wait for that.
        seen = found
        found = describe_transaction(client, transactional_id)
        if found is None or not seen.same_transaction(found):
            state = "gone" if found is None else f"state {found.state}, epoch {found.producer_epoch}"
            say(f"The transaction has changed meanwhile (now: {state}). Nothing was done; list it again.")
            return _NOTHING_DONE
        owner = TransactionalId(client, transactional_id, min(found.timeout_ms, _TAKEOVER_TIMEOUT_MS))
        try:
            owner.fence()
        except (DeadlineError, TransportError) as error:
            raise error.located(
                "The abort may be decided already and take effect soon; `pyspark-kafka transactions list` shows it"
            ) from error
    say(
        f"The transaction of '{name}' is aborted: readers with read_committed continue, and never see its records.",
        "Its owner is fenced: what it writes next fails, with INVALID_PRODUCER_EPOCH or the like. An exactly-once "
        "query of pyspark-kafka then writes its batch again automatically; another program may have to be restarted.",
    )
    return ExitStatus.WELL


def resolve_loss(where: Where, sink_id: str, *, commit_topic: str | None, ask: bool) -> ExitStatus:
    """Show the lost part of a micro-batch, prompt, and record that it is dealt with; return the exit code.

    Raises:
        ConnectorError: the brokers cannot be reached, or refuse; or a driver of the sink has taken over meanwhile.
    """
    name = printable(sink_id)
    settings = ExactlyOnceOptions() if commit_topic is None else ExactlyOnceOptions(commit_topic=commit_topic)
    with connect(where) as client:
        marker = _markers(client, settings.commit_topic, [sink_id]).get(sink_id)
        if marker is None:
            say(f"The topic '{printable(settings.commit_topic)}' has no commit marker of '{name}'. Nothing was done.")
            return _NOTHING_DONE
        if marker.decision is None or not marker.decision.lost:
            say(f"Batch {marker.batch_id}, the newest one of '{name}', has lost nothing. Nothing was done.")
            return _NOTHING_DONE
        say(f"{incomplete(marker).message}", "All places:", *lost_places(marker.decision.lost))
        if ask and not _confirmed("Continue without them, because they were written again, or are not needed?"):
            say("Nothing was done.")
            return _NOTHING_DONE
        calls = BrokerTaskCommitCalls(client, WriteOptions(client.options), settings, sink_id)
        if not TaskCommits(calls, sink_id, settings.transaction_timeout_ms).resolve(marker):
            say("The sink has another commit marker meanwhile. Nothing was noted; run the command again.")
            return _NOTHING_DONE
    say(f"It is noted. Start the query: it continues with the micro-batch after batch {marker.batch_id}.")
    return ExitStatus.WELL


def _markers_of(
    client: KafkaClient, commit_topic: str | None, found: Iterable[TransactionDescription]
) -> dict[str, CommitMarker] | None:
    return None if commit_topic is None else _markers(client, commit_topic, [each.transactional_id for each in found])


def _markers(client: KafkaClient, commit_topic: str, sink_ids: list[str]) -> dict[str, CommitMarker]:
    return MarkerReader(client, CommitTopic(client, commit_topic), 0).read_newest(sink_ids)


def _abortable(found: TransactionDescription) -> bool:
    name = printable(found.transactional_id)
    if found.state is TransactionState.ONGOING:
        return True
    if not found.state.is_open:
        say(f"The transactional id '{name}' has no open transaction (state {found.state}). Nothing was done.")
    else:
        reason = _DECIDED.get(found.state, "This version of pyspark-kafka does not know the state.")
        say(f"The transaction of '{name}' is not aborted (state {found.state}). {reason} Nothing was done.")
    return False


def _describe(found: TransactionDescription, now_ms: int, markers: dict[str, CommitMarker] | None) -> None:
    say(
        f"Transaction of '{printable(found.transactional_id)}': state {found.state}, producer {producer_text(found)}, "
        f"open since {since_text(found, now_ms)}, timeout {span_text(found.timeout_ms)}, coordinator "
        f"{found.coordinator_id} ({found.coordinator})."
    )
    held = "; ".join(partitions_text(found.partitions)) or "no partition that this user may describe"
    say(f"It holds {held}.")
    if markers is not None:
        say(f"Its owner: {owner_text(markers.get(found.transactional_id))}.")


def _confirmed(question: str) -> bool:
    try:
        return typer.confirm(question)
    except typer.Abort:
        # Ctrl-C, or no terminal for the prompt; click's own word for it is "Aborted!".
        typer.echo()
        return False


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
