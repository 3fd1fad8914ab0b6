"""What is committed to a group, when, and what of failures is logged; without a broker."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.wire.error_codes import broker_error
from pyspark_kafka._client.options import ConnectionOptions
from pyspark_kafka._connector.source.driver.reporting.group_offsets import CommittedGroup
from pyspark_kafka.errors import BrokerError, TransportError

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
LONG = 60.0


class Brokers:
    """Takes commits, as `GroupCommits` does; fails as often as a test says."""

    def __init__(self) -> None:
        self.commits: list[dict[TopicPartition, int]] = []
        self.failures: list[Exception] = []
        self.refused: dict[TopicPartition, BrokerError] = {}

    def __call__(self, _: object, group_id: str) -> Brokers:
        assert group_id == "lag"
        return self

    def commit_positions(self, positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, BrokerError]:
        if self.failures:
            raise self.failures.pop(0)
        self.commits.append(dict(positions))
        return {tp: error for tp, error in self.refused.items() if tp in positions}


class Setting:
    """A group, its brokers and its clock."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.brokers = Brokers()
        connection = ConnectionOptions(bootstrap_servers=(("localhost", 9092),))
        self.group = CommittedGroup(connection, "lag", lambda: self.now)

    def note(self, ends: Mapping[TopicPartition, int], after_s: float = 1.0) -> None:
        self.now += after_s
        self.group.note(ends)
        assert self.group.flush(LONG)


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch) -> Setting:
    @contextmanager
    def borrow(_: Any) -> Iterator[None]:
        yield None

    setting = Setting()
    monkeypatch.setattr("pyspark_kafka._connector.source.driver.reporting.group_offsets.borrow_client", borrow)
    monkeypatch.setattr("pyspark_kafka._client.client.transactions.group_commits.GroupCommits", setting.brokers)
    return setting


def test_only_positions_that_changed_are_committed(setting: Setting) -> None:
    setting.note({A: 1, B: 2})
    setting.note({A: 1, B: 2})
    setting.note({A: 3, B: 2})
    # Back, as after a rewind.
    setting.note({A: 2, B: 2})
    assert setting.brokers.commits == [{A: 1, B: 2}, {A: 3}, {A: 2}]


def test_all_positions_are_committed_again_after_an_hour(setting: Setting) -> None:
    setting.note({A: 1, B: 2})
    setting.note({A: 1, B: 2}, after_s=3_601.0)
    assert setting.brokers.commits == [{A: 1, B: 2}] * 2


def test_failure_is_one_warning_a_minute_and_what_it_left_is_committed_later(
    setting: Setting, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "pyspark_kafka._connector.source.driver.reporting.group_offsets")
    lost = TransportError("no broker", condition="NO_BROKER_REACHABLE")
    setting.brokers.failures = [lost] * 3
    for after_s in (0.0, 11.0, 11.0):
        setting.note({A: 1}, after_s)
    assert not setting.brokers.failures
    setting.note({A: 1}, 11.0)
    assert setting.brokers.commits == [{A: 1}]
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1
    assert warnings[0].startswith(
        "The ends of finished batches could not be committed to consumer group 'lag', where Kafka's tools see them. "
        "The query continues, and tries again. [NO_BROKER_REACHABLE] no broker"
    )
    assert caplog.messages[-1] == "The ends of finished batches are committed to consumer group 'lag' again."


def test_failure_is_not_tried_again_with_every_batch(setting: Setting) -> None:
    setting.brokers.failures = [TransportError("no broker", condition="NO_BROKER_REACHABLE")]
    setting.note({A: 1})
    setting.note({A: 2}, after_s=1.0)
    assert setting.brokers.commits == []
    setting.note({A: 3}, after_s=10.0)
    assert setting.brokers.commits == [{A: 3}]


def test_refused_partitions_are_warned_of_and_the_others_are_committed(
    setting: Setting, caplog: pytest.LogCaptureFixture
) -> None:
    setting.brokers.refused = {B: broker_error(3, "Setting it failed", rights=())}
    setting.note({A: 1, B: 2})
    setting.note({A: 4, B: 2}, after_s=11.0)
    assert setting.brokers.commits == [{A: 1, B: 2}, {A: 4, B: 2}]
    assert "in 1 partitions could not be committed" in caplog.text


def test_others_are_committed_at_once_while_some_are_refused(setting: Setting) -> None:
    setting.brokers.refused = {B: broker_error(3, "Setting it failed", rights=())}
    setting.note({A: 1, B: 2})
    setting.note({A: 100, B: 2})
    assert setting.brokers.commits == [{A: 1, B: 2}, {A: 100}]


def test_end_of_a_run_tries_once_more_what_failed_a_moment_ago(setting: Setting) -> None:
    setting.brokers.failures = [TransportError("no broker", condition="NO_BROKER_REACHABLE")]
    setting.note({A: 1})
    assert setting.group.flush(LONG, once_more=True)
    assert setting.brokers.commits == [{A: 1}]


def test_end_of_a_run_tries_the_newest_ends_although_the_commit_in_work_fails(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, offered = threading.Event(), threading.Event()
    commit, offer = setting.brokers.commit_positions, setting.group._thread.offer

    def held(_: Mapping[TopicPartition, int]) -> dict[TopicPartition, BrokerError]:
        begun.set()
        assert offered.wait(LONG)
        monkeypatch.setattr(setting.brokers, "commit_positions", commit)
        raise TransportError("no broker", condition="NO_BROKER_REACHABLE")

    def noted(value: Any) -> None:
        offer(value)
        offered.set()

    monkeypatch.setattr(setting.brokers, "commit_positions", held)
    setting.group.note({A: 1})
    assert begun.wait(LONG)
    setting.group.note({A: 2})
    monkeypatch.setattr(setting.group._thread, "offer", noted)
    assert setting.group.flush(LONG, once_more=True)
    assert setting.brokers.commits == [{A: 2}]
