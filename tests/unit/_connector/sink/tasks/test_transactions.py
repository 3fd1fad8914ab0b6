"""Pools of transactional ids, and decisions as commit markers hold them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.transactions.open_transaction import Generation, OpenTransaction, TransactionIdentity
from pyspark_kafka._connector.sink.commit_marker import CommitMarker, judge_marker
from pyspark_kafka._connector.sink.tasks.transactions import (
    CommitDecision,
    TaskTransaction,
    continue_pool,
    is_abandoned,
    is_of_pool,
    new_pool,
)
from pyspark_kafka._connector.sink.transactional_ids import task_prefix
from pyspark_kafka.errors import CheckpointError, CorruptRecordsError, DeliveryError

WRITTEN = TransactionIdentity(7, 4, Generation.V2)
ID = "0123456789abcdef0123456789abcdef"
TASK = TaskTransaction(
    OpenTransaction(f"sink-7.1-{ID}", TransactionIdentity(9, 0, Generation.V2)),
    records=3,
    offsets={TopicPartition("a", 1): (5, 7), TopicPartition("b", 0): (0, 1)},
)
DECIDED = CommitDecision("7.1", WRITTEN, (TASK,))
MARKER = CommitMarker("sink", "query", 4, "print", records=3, decision=DECIDED)


def test_decision_is_read_as_it_was_written() -> None:
    found = CommitMarker.from_bytes(MARKER.to_bytes(), "here")
    assert found.decision == DECIDED
    lost = replace(MARKER, decision=DECIDED.completed([TASK], pool="7.1"))
    assert CommitMarker.from_bytes(lost.to_bytes(), "here").decision == lost.decision


def test_marker_without_a_decision_stays_readable_for_former_versions() -> None:
    assert json.loads(replace(MARKER, decision=None).to_bytes())["version"] == 1
    assert json.loads(MARKER.to_bytes())["version"] == 2


@pytest.mark.parametrize(
    ("tasks", "partitions", "topic"),
    # One task of many partitions; many tasks; few of topics with the longest names.
    [(1, [100_000], "a"), (6_000, [1], "orders"), (50, [1] * 100, "t" * 246)],
)
def test_decision_names_no_offsets_if_a_record_has_no_room_for_them(
    tasks: int, partitions: list[int], topic: str
) -> None:
    offsets = {
        TopicPartition(f"{topic}{number:03}", partition): (10**9, 10**9 + 7)
        for number, count in enumerate(partitions)
        for partition in range(count)
    }
    written = tuple(
        replace(TASK, offsets=offsets, transaction=replace(TASK.transaction, name=f"pyspark-kafka-{ID}{each:04}"))
        for each in range(tasks)
    )
    bare = tuple(replace(task, offsets=None) for task in written)
    for decision in (replace(DECIDED, tasks=written), DECIDED.completed(written, pool="7.1")):
        data = replace(MARKER, decision=decision).to_bytes()
        assert len(data) < 1_000_000
        found = CommitMarker.from_bytes(data, "here").decision
        assert found is not None
        assert found.tasks + found.lost == bare


def test_decision_that_is_malformed_is_no_marker() -> None:
    broken = MARKER.to_bytes().replace(b'"pool"', b'"pond"')
    with pytest.raises(CorruptRecordsError, match="COMMIT_MARKER_INVALID"):
        CommitMarker.from_bytes(broken, "here")


@pytest.mark.parametrize(
    ("found", "planned", "pool"),
    [
        (None, WRITTEN, None),
        (DECIDED, replace(WRITTEN, producer_epoch=6), None),
        (DECIDED.completed([], pool="7.1"), replace(WRITTEN, producer_epoch=6), "7.1"),
        # Somebody has taken over in between, or the numbers of epochs were used up.
        (DECIDED.completed([], pool="7.1"), replace(WRITTEN, producer_epoch=7), None),
        (DECIDED.completed([], pool="7.1"), replace(WRITTEN, producer_id=8, producer_epoch=6), None),
        # Completed by another driver than the one that used it.
        (DECIDED.completed([], pool=""), replace(WRITTEN, producer_epoch=6), None),
    ],
)
def test_next_owner_continues_the_pool(
    found: CommitDecision | None, planned: TransactionIdentity, pool: str | None
) -> None:
    assert continue_pool(found, planned) == pool


def test_end_of_a_transaction_raises_no_epoch_in_the_first_generation() -> None:
    written = replace(WRITTEN, generation=Generation.V1)
    found = replace(DECIDED.completed([], pool="7.1"), identity=written)
    assert continue_pool(found, replace(written, producer_epoch=5)) == "7.1"
    assert continue_pool(found, replace(written, producer_epoch=6)) is None


@pytest.mark.parametrize(
    ("name", "abandoned"),
    [
        (f"sink-7.3-{ID}", True),
        # Of a later takeover; of this driver; of another producer id; of other sinks; the sink's own; a lane's.
        (f"sink-7.9-{ID}", False),
        (f"sink-7.1-{ID}", False),
        (f"sink-8.3-{ID}", False),
        (f"sink-7.3-7.3-{ID}", False),
        (f"other-7.3-{ID}", False),
        ("sink", False),
        ("sink-0", False),
    ],
)
def test_ids_of_replaced_drivers_are_abandoned(name: str, abandoned: bool) -> None:
    assert is_abandoned(name, "sink", replace(WRITTEN, producer_epoch=6), "7.1") is abandoned


@pytest.mark.parametrize(
    ("name", "abandoned"),
    [
        # Of the producer id that decided last; of the one that its pool is named after; of one that nobody knows.
        (f"sink-7.3-{ID}", True),
        (f"sink-6.9-{ID}", True),
        (f"sink-5.1-{ID}", False),
        (f"sink-8.0-{ID}", False),
    ],
)
def test_ids_of_a_former_producer_id_of_the_sink_are_abandoned(name: str, abandoned: bool) -> None:
    newest = replace(DECIDED, pool="6.9").completed([], pool="6.9")
    planned = replace(WRITTEN, producer_id=8, producer_epoch=0)
    assert is_abandoned(name, "sink", planned, "8.0", newest) is abandoned
    assert not is_abandoned(name, "sink", planned, "8.0")


def test_pool_has_only_ids_of_its_tasks() -> None:
    assert is_of_pool(f"sink-7.3-{ID}", "sink", "7.3")
    # Of a sink that a user has named like a pool.
    assert not is_of_pool(f"sink-7.3-7.1-{ID}", "sink", "7.3")
    assert not is_of_pool("sink-7.3-0", "sink", "7.3")
    assert not is_of_pool(f"sink-7.30-{ID}", "sink", "7.3")


def test_new_pool_is_named_after_the_takeover() -> None:
    assert task_prefix("sink", new_pool(WRITTEN)) == "sink-7.4-"


def test_open_decision_and_lost_parts_of_a_marker_are_errors() -> None:
    ours = replace(MARKER, decision=None)
    with pytest.raises(CheckpointError, match=r"\[SINK_COMMIT_OPEN\] Batch 4 of the sink 'sink' is decided, and not"):
        judge_marker(MARKER, ours)
    lost = replace(MARKER, decision=DECIDED.completed([TASK], pool="7.1"))
    with pytest.raises(DeliveryError) as caught:
        judge_marker(lost, ours)
    assert caught.value.condition == "SINK_COMMIT_INCOMPLETE"
    assert "without 3 of its records" in caught.value.message
    assert "a-1 from 5 to 6, b-0 from 0 to 0" in caught.value.message
    assert "`pyspark-kafka transactions resolve sink`" in caught.value.hint
    judge_marker(lost, replace(ours, batch_id=5))


def test_forgotten_parts_are_not_reported_as_lost() -> None:
    forgotten = replace(TASK, records=4, is_forgotten=True)
    for noted in ([forgotten], [forgotten, TASK]):
        marker = replace(MARKER, decision=DECIDED.completed(noted, pool="7.1"))
        found = CommitMarker.from_bytes(marker.to_bytes(), "here")
        assert found.decision == marker.decision
        with pytest.raises(
            DeliveryError, match="Whether 4 records of batch 4 of query query are committed is"
        ) as caught:
            judge_marker(found, replace(MARKER, decision=None))
        assert caught.value.condition == "SINK_COMMIT_INCOMPLETE"
        assert ("committed without 3 of its records" in caught.value.message) is (TASK in noted)
        assert caught.value.hint.startswith("Look whether the records of forgotten transactions are visible.")
