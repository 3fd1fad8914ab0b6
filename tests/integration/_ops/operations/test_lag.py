"""Lag against real brokers: of a group, of a checkpoint, with what cannot be found out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from kafka import KafkaProducer

from kit.administration import delete_records, delete_topics
from kit.brokers.two_brokers import two_brokers
from kit.checkpoint_files import write_checkpoint
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, commit_positions, produce
from kit.programs.cli import invoke
from kit.waiting import PATIENCE_S
from pyspark_kafka import lag
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._connector.sink.driver.lane_record_file import LaneRecordFile
from pyspark_kafka._connector.sink.source_positions import LaneRecord
from pyspark_kafka._ops.operations.lag.values import LagState
from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.errors import OptionError, TransportError

HOUR_MS = 3_600_000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def records(count: int, partition: int, *, first_ms: int, step_ms: int = 0) -> list[Record]:
    return [Record(None, b"v" * 100, partition, first_ms + number * step_ms) for number in range(count)]


def group_of(servers: str, positions: dict[tuple[str, int], int]) -> str:
    group = f"g-{uuid.uuid4().hex[:8]}"
    commit_positions(servers, group, positions)
    return group


def test_lag_of_a_group_has_records_bytes_seconds_and_headroom(
    bootstrap_servers: str, make_topic: TopicMaker, client: KafkaClient
) -> None:
    topic = make_topic(4, {"retention.ms": str(4 * HOUR_MS)})
    written_ms = now_ms() - HOUR_MS
    for partition in (0, 1, 2):
        produce(bootstrap_servers, topic, records(10, partition, first_ms=written_ms, step_ms=60_000))
    delete_records(client, {TopicPartition(topic, 2): 6})
    group = group_of(bootstrap_servers, {(topic, 0): 4, (topic, 1): 10, (topic, 2): 5, (topic, 3): 2})
    report = lag({"bootstrap.servers": bootstrap_servers}, group=group)
    behind, caught_up, lost, beyond = report
    assert (behind.position, behind.log_start, behind.end, behind.records_behind) == (4, 0, 10, 6)
    assert behind.bytes_behind is not None
    # 10 records of 100 bytes and what is stored around them.
    assert 600 < behind.bytes_behind < 1_500
    assert behind.position_time_ms == written_ms + 4 * 60_000
    assert behind.newest_time_ms == written_ms + 9 * 60_000
    assert behind.seconds_behind == pytest.approx((report.measured_at_ms - written_ms) / 1000 - 240, abs=0.001)
    assert behind.seconds_behind is not None
    assert behind.headroom_s == pytest.approx(4 * 3_600 - behind.seconds_behind, abs=0.001)
    assert behind.headroom_reason == "retention.ms"
    assert (caught_up.records_behind, caught_up.seconds_behind, caught_up.state) == (0, 0.0, LagState.KNOWN)
    assert (lost.state, lost.records_lost, lost.records_behind, lost.headroom_s) == (LagState.LOST, 1, 4, 0.0)
    assert (beyond.state, beyond.end, beyond.records_behind) == (LagState.BEYOND_END, 0, None)
    assert not report.is_complete
    assert report.missing == ()


def test_rates_are_those_between_two_looks(bootstrap_servers: str, make_topic: TopicMaker) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, records(10, 0, first_ms=now_ms()))
    group = group_of(bootstrap_servers, {(topic, 0): 0})
    before = lag({"bootstrap.servers": bootstrap_servers}, group=group)
    produce(bootstrap_servers, topic, records(20, 0, first_ms=now_ms()))
    commit_positions(bootstrap_servers, group, {(topic, 0): 5})
    (found,) = after = lag({"bootstrap.servers": bootstrap_servers}, group=group, before=before)
    seconds = (after.measured_at_ms - before.measured_at_ms) / 1000
    assert found.produced_per_s == pytest.approx(20 / seconds)
    assert found.consumed_per_s == pytest.approx(5 / seconds)


def test_lag_of_a_checkpoint_is_measured_from_its_last_finished_batch(
    bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = make_topic(2)
    for partition in (0, 1):
        produce(bootstrap_servers, topic, records(30, partition, first_ms=now_ms()))
    ends = [{topic: {"0": 10 * number, "1": 30}} for number in (0, 1, 2)]
    write_checkpoint(tmp_path, ends, finished=2)
    report = lag({"bootstrap.servers": bootstrap_servers}, checkpoint=str(tmp_path))
    assert [each.records_behind for each in report] == [20, 0]
    # 10 records in the 10 s between both batches.
    assert report.partitions[0].consumed_per_s == pytest.approx(1.0)


def test_topic_that_is_gone_or_recreated_is_told_and_the_others_are_measured(
    bootstrap_servers: str, make_topic: TopicMaker, client: KafkaClient, tmp_path: Path
) -> None:
    kept, gone, other = make_topic(), make_topic(), make_topic()
    produce(bootstrap_servers, kept, records(3, 0, first_ms=now_ms()))
    write_checkpoint(tmp_path, [{kept: {"0": 1}, gone: {"0": 1}, other: {"0": 0}}])
    ids = {other: str(uuid.uuid4()), kept: str(client.fetch_metadata([kept]).topics[kept].topic_id)}
    (tmp_path / "sources/0/topic-ids").write_text(f"v1\n{json.dumps({'topics': ids, 'restart': None})}\n")
    delete_topics(client, [gone])
    states = {each.topic: each for each in lag({"bootstrap.servers": bootstrap_servers}, checkpoint=str(tmp_path))}
    assert states[kept].records_behind == 2
    assert states[gone].state is LagState.GONE
    assert f"Topic '{gone}' does not exist" in states[gone].missing[0]
    assert states[other].state is LagState.RECREATED
    assert ids[other] in states[other].missing[0]


def test_end_is_the_last_stable_offset_with_read_committed_and_nothing_behind_it_is_lost(
    bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    """The isolation level counts with and without a subscription; a position after the stable end was not cut."""
    topic = make_topic()
    produce(bootstrap_servers, topic, [Record(None, b"v", 0)] * 2)
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers, transactional_id=f"open-{topic}")
    try:
        producer.init_transactions()
        producer.begin_transaction()
        for _ in range(4):
            producer.send(topic, b"open", partition=0).get(timeout=PATIENCE_S)
        for position, expected in (
            (0, (LagState.KNOWN, 2, 2)),
            (2, (LagState.KNOWN, 0, 2)),
            (6, (LagState.KNOWN, 0, 6)),
        ):
            group = group_of(bootstrap_servers, {(topic, 0): position})
            for more in ({}, {"subscribe": topic}):
                options = {"bootstrap.servers": bootstrap_servers, "isolation.level": "read_committed", **more}
                (found,) = lag(options, group=group).partitions
                assert (found.state, found.records_behind, found.end) == expected
            (found,) = lag({"bootstrap.servers": bootstrap_servers}, group=group).partitions
            assert (found.records_behind, found.end) == (6 - position, 6)
        beyond = group_of(bootstrap_servers, {(topic, 0): 7})
        (found,) = lag(options, group=beyond).partitions
        assert found.state is LagState.BEYOND_END
        producer.abort_transaction()
    finally:
        producer.close()


def test_options_of_readers_without_effect_are_named(
    bootstrap_servers: str, make_topic: TopicMaker, caplog: pytest.LogCaptureFixture
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, [Record(None, b"v", 0)])
    options = {
        "bootstrap.servers": bootstrap_servers,
        "startingOffsets": "earliest",
        "isolation.level": "read_committed",
    }
    report = lag(options, group=group_of(bootstrap_servers, {(topic, 0): 0}))
    assert caplog.messages == ["Options of readers have no effect on the lag: 'startingOffsets'."]
    lag(options, group=group_of(bootstrap_servers, {(topic, 0): 0}), before=report)
    assert len(caplog.messages) == 1


def test_large_record_batches_have_a_time_as_well(bootstrap_servers: str, make_topic: TopicMaker) -> None:
    topic = make_topic(3)
    first_ms = now_ms() - HOUR_MS
    for partition, size in enumerate((100, 20_000, 900_000)):
        produce(bootstrap_servers, topic, [Record(None, b"v" * size, partition, first_ms + partition)])
    group = group_of(bootstrap_servers, {(topic, partition): 0 for partition in range(3)})
    report = lag({"bootstrap.servers": bootstrap_servers}, group=group)
    assert [each.position_time_ms for each in report] == [first_ms, first_ms + 1, first_ms + 2]


def test_lag_without_times_reads_no_records(bootstrap_servers: str, make_topic: TopicMaker) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, records(3, 0, first_ms=now_ms()))
    group = group_of(bootstrap_servers, {(topic, 0): 1})
    (found,) = lag({"bootstrap.servers": bootstrap_servers}, group=group, times=False)
    assert (found.records_behind, found.seconds_behind, found.position_time_ms) == (2, None, None)


def test_group_that_does_not_exist_is_refused(bootstrap_servers: str) -> None:
    with pytest.raises(OptionError, match="There are no positions of consumer group 'nobody-") as caught:
        lag({"bootstrap.servers": bootstrap_servers}, group=f"nobody-{uuid.uuid4().hex}")
    assert caught.value.condition == "NO_POSITIONS"


def test_brokers_that_are_away_are_named(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": 1}}])
    with pytest.raises(TransportError, match="localhost:1"):
        lag({"bootstrap.servers": "localhost:1"}, checkpoint=str(tmp_path), timeout_s=2)


def test_partitions_of_a_stopped_broker_are_not_known_and_the_others_are(tmp_path: Path) -> None:
    with two_brokers(tmp_path / "brokers") as cluster:
        topic = cluster.create_topic("orders", ((1,), (2,)))
        for partition in (0, 1):
            produce(cluster.bootstrap_servers, topic, records(5, partition, first_ms=now_ms()))
        write_checkpoint(tmp_path / "checkpoint", [{topic: {"0": 1, "1": 1}}])
        cluster.second.kill()
        options = {"bootstrap.servers": cluster.first.bootstrap_servers}
        report = lag(options, checkpoint=str(tmp_path / "checkpoint"), timeout_s=20)
        known, unknown = report
        assert (known.records_behind, known.state, known.missing) == (4, LagState.KNOWN, ())
        assert known.position_time_ms is not None
        assert (unknown.records_behind, unknown.state) == (None, LagState.UNKNOWN)
        assert unknown.missing[0].startswith("its log: ")
        assert not report.is_complete
        servers = ("--bootstrap-servers", cluster.first.bootstrap_servers)
        result = invoke("lag", *servers, "--checkpoint", str(tmp_path / "checkpoint"))
        assert result.exit_code == 3, result.output
        assert "orders-0: 4 records behind" in result.output
        assert "orders-1: unknown" in result.output
        result = invoke("lag", *servers, "--checkpoint", str(tmp_path / "checkpoint"), "--max-records", "3")
        assert result.exit_code == 1, result.output


def test_command_shows_lag_and_exits_by_thresholds(bootstrap_servers: str, make_topic: TopicMaker) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, records(5, 0, first_ms=now_ms() - HOUR_MS))
    group = group_of(bootstrap_servers, {(topic, 0): 1})
    command = ("lag", "--bootstrap-servers", bootstrap_servers, "--group", group)
    result = invoke(*command)
    assert result.exit_code == 0, result.output
    assert f"{topic}-0: 4 records behind" in result.output
    result = invoke(*command, "--json", "--max-seconds", "30m")
    assert result.exit_code == 1, result.output
    told = json.loads(result.stdout)
    assert told["partitions"][0]["records_behind"] == 4
    assert told["findings"][0].startswith("The record at the position is older than 30 m: ")
    assert invoke(*command, "--max-seconds", "2h", "--max-records", "4").exit_code == 0
    assert invoke(*command, "--topic", "another").exit_code == 2


@pytest.mark.parametrize(
    "arguments", [(), ("--group", "g", "--checkpoint", "/c"), ("--group", "g", "--watch", "--json")]
)
def test_command_refuses_arguments_that_do_not_fit(bootstrap_servers: str, arguments: tuple[str, ...]) -> None:
    assert invoke("lag", "--bootstrap-servers", bootstrap_servers, *arguments).exit_code == 2


def test_lanes_of_an_exactly_once_continuous_query_count_as_far_as_they_have_committed(
    bootstrap_servers: str, make_topic: TopicMaker, client: KafkaClient, tmp_path: Path
) -> None:
    topic = make_topic(2)
    for partition in (0, 1):
        produce(bootstrap_servers, topic, records(10, partition, first_ms=now_ms()))
    group = group_of(bootstrap_servers, {(topic, 0): 7, (topic, 1): 1})
    topic_id = str(client.fetch_metadata([topic]).topics[topic].topic_id)
    write_checkpoint(tmp_path, [{topic: {"0": 4, "1": 4}}])
    (tmp_path / "continuous").mkdir()
    record = LaneRecord("1", group, "prefix", 2, {TopicPartition(topic, number): topic_id for number in (0, 1)})
    LaneRecordFile(CheckpointFiles(str(tmp_path))).write(record)
    report = lag({"bootstrap.servers": bootstrap_servers}, checkpoint=str(tmp_path))
    assert [each.position for each in report] == [7, 4]


def test_program_watches_until_it_is_interrupted(bootstrap_servers: str, make_topic: TopicMaker) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, records(5, 0, first_ms=now_ms()))
    group = group_of(bootstrap_servers, {(topic, 0): 1})
    command = [sys.executable, "-m", "pyspark_kafka", "lag", "--group", group, "--watch", "--interval", "0.1"]
    environment = {**os.environ, "PYSPARK_KAFKA_BOOTSTRAP_SERVERS": bootstrap_servers, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as ran:
        assert ran.stdout is not None
        seen = [ran.stdout.readline() for _ in range(3)]
        produce(bootstrap_servers, topic, records(2, 0, first_ms=now_ms()))
        while "6 records behind" not in (line := ran.stdout.readline()):
            assert line, "the program has ended"
        ran.send_signal(signal.SIGINT)
        _, errors = ran.communicate(timeout=300)
    assert seen[0].startswith(f"Lag of consumer group '{group}': 1 partition")
    assert ran.returncode == 130
    assert "Interrupted." in errors
    assert "Traceback" not in errors
