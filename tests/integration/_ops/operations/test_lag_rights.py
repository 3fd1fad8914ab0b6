"""Lag for a user with few rights: what each missing one costs, and the line that grants it."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

import pytest

from kit.checkpoint_files import write_checkpoint
from kit.independent_client import Record, commit_positions, produce
from kit.rights_in_use import Guarded
from pyspark_kafka import lag
from pyspark_kafka._client.client.wire.missing_rights import Right
from pyspark_kafka._ops.operations.lag.values import LagState
from pyspark_kafka.errors import AccessError


def topic_of(guarded: Guarded) -> str:
    topic = f"t-{uuid.uuid4().hex[:8]}"
    guarded.kafka.create_topic(topic, 1, {"retention.ms": "3600000"})
    now_ms = time.time_ns() // 1_000_000
    produce(guarded.kafka.bootstrap_servers, topic, [Record(None, b"v", 0, now_ms) for _ in range(5)])
    return topic


def options_of(guarded: Guarded) -> dict[str, str]:
    # A client of its own: what another run has heard of topics must not answer for the broker.
    return {**guarded.user, "kafka.client.id": uuid.uuid4().hex}


def test_right_to_describe_the_topic_is_enough_for_records_behind(guarded: Guarded, tmp_path: Path) -> None:
    topic = topic_of(guarded)
    write_checkpoint(tmp_path, [{topic: {"0": 1}}])
    guarded.acls.put([Right("Describe", "topic", topic)])
    (found,) = report = lag(options_of(guarded), checkpoint=str(tmp_path))
    assert (found.state, found.records_behind) == (LagState.KNOWN, 4)
    assert (found.bytes_behind, found.seconds_behind, found.headroom_s) == (None, None, None)
    told = " ".join(reason for reason, _ in report.reasons())
    for needed in ("--operation Describe --cluster", f"--operation Read --topic {topic}"):
        assert f"--allow-principal User:alice {needed}`" in told
    assert f"--operation DescribeConfigs --topic {topic}`" in told


def test_all_rights_leave_nothing_unknown(guarded: Guarded, tmp_path: Path) -> None:
    topic = topic_of(guarded)
    write_checkpoint(tmp_path, [{topic: {"0": 1}}])
    guarded.acls.put(
        [Right("Read", "topic", topic), Right("DescribeConfigs", "topic", topic), Right("Describe", "cluster")]
    )
    (found,) = report = lag(options_of(guarded), checkpoint=str(tmp_path))
    assert report.reasons() == ()
    assert None not in (found.bytes_behind, found.seconds_behind)
    assert found.headroom_s is not None
    assert 0 < found.headroom_s <= 3_600


def test_topic_that_may_not_be_described_is_as_good_as_gone(guarded: Guarded, tmp_path: Path) -> None:
    topic = topic_of(guarded)
    write_checkpoint(tmp_path, [{topic: {"0": 1}}])
    guarded.acls.put([])
    (found,) = lag(options_of(guarded), checkpoint=str(tmp_path))
    assert found.state in (LagState.GONE, LagState.UNKNOWN)
    assert found.records_behind is None
    assert "this user may not describe it" in found.missing[0] or "Missing right" in found.missing[0]


def test_group_that_may_not_be_described_names_the_right(guarded: Guarded) -> None:
    topic, group = topic_of(guarded), f"g-{uuid.uuid4().hex[:8]}"
    commit_positions(guarded.kafka.bootstrap_servers, group, {(topic, 0): 1})
    guarded.acls.put([Right("Describe", "topic", topic)])
    with pytest.raises(AccessError) as caught:
        lag(options_of(guarded), group=group)
    assert f"--operation Read --group {group}`" in str(caught.value)
    guarded.acls.put([Right("Describe", "topic", topic), Right("Describe", "group", group)])
    (found,) = lag(options_of(guarded), group=group)
    assert found.records_behind == 4
