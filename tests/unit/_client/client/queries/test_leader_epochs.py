"""Where the logs of leaders end, by the ends of their own epochs."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.cluster.metadata import PartitionMetadata
from pyspark_kafka._client.client.queries import leader_epochs
from pyspark_kafka._client.client.queries.leader_epochs import EpochEnd, EpochQuestion, fetch_log_ends
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka.errors import TransportError

P = [TopicPartition("t", number) for number in range(6)]


def test_log_ends_are_those_that_leaders_return_for_their_own_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[int, list[EpochQuestion]] = {}

    def answer(_: Any, questions: Mapping[int, list[EpochQuestion]], __: Deadline) -> dict[TopicPartition, Any]:
        asked.update(questions)
        lost = TransportError("lost", condition="CONNECTION_LOST")
        return {P[0]: EpochEnd(0, 7), P[1]: EpochEnd(74, -1), P[2]: EpochEnd(0, -1), P[3]: lost}

    monkeypatch.setattr(leader_epochs, "fetch_epoch_ends", answer)
    leaders = {tp: PartitionMetadata(tp, leader_id=tp.partition % 2, leader_epoch=3) for tp in P[:4]}
    # Its broker does not return epochs; the last one has no leader.
    leaders[P[4]] = PartitionMetadata(P[4], leader_id=0, leader_epoch=-1)
    client: Any = SimpleNamespace(cached_leader=leaders.get)
    assert fetch_log_ends(client, P, Deadline(1_000)) == {P[0]: 7}
    assert asked == {
        0: [EpochQuestion(P[0], 3, 3), EpochQuestion(P[2], 3, 3)],
        1: [EpochQuestion(P[1], 3, 3), EpochQuestion(P[3], 3, 3)],
    }
