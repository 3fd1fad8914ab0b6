"""Plans of the continuous source, when it asks for another one, and how positions of readers become an offset."""

from __future__ import annotations

import logging
import pickle
from pathlib import Path
from typing import Any

import pytest

from kit.fakes.clock import Clock
from kit.fixtures.offsets import ScriptedOffsets
from kit.texts import said
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import Earliest, KafkaSourceOffset, SpecificOffsets
from pyspark_kafka._client.options import ConnectionOptions, StreamReadOptions, Subscription
from pyspark_kafka._connector.source.driver.continuous import KafkaContinuousStream
from pyspark_kafka._connector.source.executor.columns import source_schema
from pyspark_kafka._connector.source.executor.partition_offset import KafkaSourcePartitionOffset
from pyspark_kafka._connector.source.input_partition import KafkaContinuousInputPartition
from pyspark_kafka.connector import PartitionOffset
from pyspark_kafka.errors import BrokerError, CheckpointError, ContractError, DataLossError, DeadlineError, OptionError

A, B, C = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("c", 0)
PATTERN = Subscription("subscribePattern", pattern=".")
LOGGER = "pyspark_kafka._connector.source.driver.continuous"


def stream_of(
    clock: Clock | None = None,
    *,
    tasks: int | None = None,
    location: str | None = None,
    subscription: Subscription = PATTERN,
    **options: Any,
) -> KafkaContinuousStream:
    connection = ConnectionOptions((("not-asked", 9092),), retry_backoff_ms=1)
    parsed = StreamReadOptions(connection, subscription, **({"starting": Earliest()} | options))
    schema = source_schema(include_headers=False)
    return KafkaContinuousStream(parsed, schema, tasks=tasks, location=location, clock=clock or Clock())


def starts_of(stream: KafkaContinuousStream, **start: int) -> list[dict[str, int]]:
    """Plan from positions by name such as `a0`; return what each task starts at, named the same."""
    position = KafkaSourceOffset({TopicPartition(name[0], int(name[1:])): offset for name, offset in start.items()})
    found = []
    for task in stream.planInputPartitions(position):
        assert isinstance(task, KafkaContinuousInputPartition)
        found.append({f"{tp.topic}{tp.partition}": offset for tp, offset in task.starts})
    return found


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


@pytest.fixture(autouse=True)
def _logs(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 10), B: (4, 20)}


def test_start_is_resolved_once(offsets: ScriptedOffsets) -> None:
    stream = stream_of()
    assert stream.initialOffset() == KafkaSourceOffset({A: 0, B: 4})
    offsets.logs[C] = (0, 1)
    assert stream.initialOffset() == KafkaSourceOffset({A: 0, B: 4})
    assert stream.deserializeOffset('{"a":{"0":3}}') == KafkaSourceOffset({A: 3})
    with pytest.raises(CheckpointError):
        stream.deserializeOffset('{"shards":3}')


def test_start_is_kept_in_the_directory_of_the_source(offsets: ScriptedOffsets, tmp_path: Path) -> None:
    assert stream_of(location=str(tmp_path)).initialOffset() == KafkaSourceOffset({A: 0, B: 4})
    offsets.logs[C] = (0, 1)
    assert stream_of(location=str(tmp_path)).initialOffset() == KafkaSourceOffset({A: 0, B: 4})
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith(".")) == ["0", "topic-ids"]


def test_start_that_names_other_partitions_is_an_error() -> None:
    with pytest.raises(OptionError, match="startingOffsets"):
        stream_of(starting=SpecificOffsets({A: 3}, {})).initialOffset()


def test_each_partition_has_a_task_that_carries_the_id_of_its_topic(offsets: ScriptedOffsets) -> None:
    offsets.topic_ids["a"] = "id-of-a"
    stream = stream_of()
    planned = stream.planInputPartitions(KafkaSourceOffset({A: 5, B: 7}))
    assert planned == [KafkaContinuousInputPartition(((A, 5),)), KafkaContinuousInputPartition(((B, 7),))]
    sent = pickle.loads(pickle.dumps(planned))  # noqa: S301 - our own bytes
    assert [task.topic_ids for task in sent] == [{"a": "id-of-a"}] * 2
    assert stream.knownPartitions == {A, B}


def test_partitions_share_tasks_as_the_engine_or_the_option_says() -> None:
    assert starts_of(stream_of(tasks=1), a0=5, a1=7) == [{"a0": 5, "a1": 7}]
    prepared = stream_of()
    prepared.prepareForTasks(1)
    assert starts_of(prepared, a0=5, a1=7) == [{"a0": 5, "a1": 7}]
    prepared.prepareForTasks(8)
    assert starts_of(prepared, a0=5, a1=7) == [{"a0": 5}, {"a1": 7}]
    assert starts_of(stream_of(max_partitions_per_task=2), a0=5, a1=7) == [{"a0": 5, "a1": 7}]
    assert starts_of(stream_of(tasks=3, max_partitions_per_task=2), a0=5, a1=7) == [{"a0": 5}, {"a1": 7}]


def test_position_has_reached_a_target_if_every_partition_has() -> None:
    stream = stream_of()
    target = KafkaSourceOffset({A: 5, B: 0})
    assert stream.hasReached(KafkaSourceOffset({A: 5}), target)
    assert stream.hasReached(KafkaSourceOffset({A: 6, B: 3}), target)
    assert not stream.hasReached(KafkaSourceOffset({A: 4, B: 3}), target)
    assert not stream.hasReached(KafkaSourceOffset({B: 3}), target)


def test_lag_has_the_figures_of_micro_batches_and_names_the_partitions_that_are_behind() -> None:
    stream = stream_of()
    position = KafkaSourceOffset({A: 5, B: 7})
    assert stream.lagMetrics(position, KafkaSourceOffset({A: 9, B: 7})) == {
        "minOffsetsBehindLatest": "0",
        "maxOffsetsBehindLatest": "4",
        "avgOffsetsBehindLatest": "2.0",
        "offsetsBehindLatest": KafkaSourceOffset({A: 4}).json(),
    }
    assert stream.lagMetrics(position, position)["offsetsBehindLatest"] == "{}"


def test_lag_names_the_ten_partitions_that_are_most_behind() -> None:
    many = [TopicPartition("t", number) for number in range(100)]
    latest = KafkaSourceOffset({each: each.partition for each in many})
    metrics = stream_of().lagMetrics(KafkaSourceOffset(dict.fromkeys(many, 0)), latest)
    assert metrics["offsetsBehindLatest"] == KafkaSourceOffset({each: each.partition for each in many[90:]}).json()
    assert metrics["maxOffsetsBehindLatest"] == "99"


def test_new_partition_starts_at_its_first_offset_whichever_that_is(
    offsets: ScriptedOffsets, caplog: pytest.LogCaptureFixture
) -> None:
    offsets.logs[C] = (90, 100)
    assert starts_of(stream_of(), a0=5, a1=7) == [{"a0": 5}, {"a1": 7}, {"c0": 90}]
    assert warnings_of(caplog) == []


def test_deleted_partition_is_an_error_after_other_brokers_were_asked(offsets: ScriptedOffsets) -> None:
    with pytest.raises(DataLossError) as caught:
        starts_of(stream_of(), a0=5, a1=7, c0=3)
    assert caught.value.condition == "KAFKA_DATA_LOSS.PARTITIONS_DELETED"
    assert "c-0: the partition was read up to 3, and has been deleted or left the subscription" in str(caught.value)
    assert offsets.asked[:4] == ["partitions", *["partitions elsewhere"] * 3]


def test_partition_that_a_lagging_broker_does_not_name_is_not_deleted(
    offsets: ScriptedOffsets, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch_assignment = offsets.fetch_assignment

    def lagging(read_topics: Any, *, elsewhere: bool = False) -> Any:
        if elsewhere:
            offsets.logs[C] = (0, 5)
        return fetch_assignment(read_topics, elsewhere=elsewhere)

    monkeypatch.setattr(offsets, "fetch_assignment", lagging)
    assert starts_of(stream_of(), a0=5, a1=7, c0=3) == [{"a0": 5}, {"a1": 7}, {"c0": 3}]


def test_deleted_partition_is_left_out_if_loss_is_tolerated(caplog: pytest.LogCaptureFixture) -> None:
    stream = stream_of(fail_on_data_loss=False)
    assert starts_of(stream, a0=5, a1=7, c0=3) == [{"a0": 5}, {"a1": 7}]
    assert stream.knownPartitions == {A, B}
    (warning,) = warnings_of(caplog)
    assert warning.startswith("[KAFKA_DATA_LOSS.PARTITIONS_DELETED] ")


def test_deleted_topic_that_the_subscription_names_is_reported_once(
    offsets: ScriptedOffsets, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fetch_assignment, missing = offsets.fetch_assignment, {"c"}

    def look_up(read_topics: Any, *, elsewhere: bool = False) -> Any:
        if missing:
            raise BrokerError("Topic 'c'", code=3, condition="UNKNOWN_TOPIC", parameters={"topic": "c"})
        return fetch_assignment(read_topics, elsewhere=elsewhere)

    monkeypatch.setattr(offsets, "fetch_assignment", look_up)
    monkeypatch.setattr(offsets, "leave_out_missing", missing.discard, raising=False)
    stream = stream_of(subscription=Subscription("subscribe", ("a", "c")), fail_on_data_loss=False)
    assert starts_of(stream, a0=5, a1=7, c0=3) == [{"a0": 5}, {"a1": 7}]
    (warning,) = warnings_of(caplog)
    assert "Topic 'c' does not exist any more" in warning


@pytest.mark.parametrize(
    "subscription",
    [Subscription("subscribe", ("a",)), Subscription("assign", topic_partitions=(A, B))],
    ids=lambda subscription: subscription.kind,
)
def test_topic_that_left_the_subscription_is_not_forgotten_in_silence(subscription: Subscription) -> None:
    with pytest.raises(DataLossError, match="c-0: the partition was read up to 3, and has been deleted or left"):
        starts_of(stream_of(subscription=subscription), a0=5, a1=7, c0=3)


def test_recreated_topic_is_read_from_its_beginning_by_each_plan_from_the_same_start(
    offsets: ScriptedOffsets, caplog: pytest.LogCaptureFixture
) -> None:
    stream = stream_of(fail_on_data_loss=False)
    assert starts_of(stream, a0=5, a1=7) == [{"a0": 5}, {"a1": 7}]
    offsets.topic_ids["a"] = "other"
    for _ in range(2):
        assert starts_of(stream, a0=5, a1=7) == [{"a0": 0}, {"a1": 4}]
    (warning,) = warnings_of(caplog)
    assert warning.startswith("[KAFKA_DATA_LOSS.TOPIC_RECREATED] ")
    # An epoch was committed.
    assert starts_of(stream, a0=2, a1=7) == [{"a0": 2}, {"a1": 7}]


def test_recreated_topic_is_an_error_of_the_plan(offsets: ScriptedOffsets) -> None:
    stream = stream_of()
    starts_of(stream, a0=5, a1=7)
    offsets.topic_ids["a"] = "other"
    with pytest.raises(DataLossError, match="TOPIC_RECREATED"):
        starts_of(stream, a0=5, a1=7)


def ends_of(stream: KafkaContinuousStream, **start: int) -> dict[str, tuple[int, int]]:
    """Plan from positions as `starts_of`; return where each partition starts and ends."""
    position = KafkaSourceOffset({TopicPartition(name[0], int(name[1:])): offset for name, offset in start.items()})
    found = {}
    for task in stream.planInputPartitions(position):
        assert isinstance(task, KafkaContinuousInputPartition)
        ends = dict(task.ends)
        found.update({f"{tp.topic}{tp.partition}": (offset, ends[tp]) for tp, offset in task.starts})
    return found


def test_plans_of_a_run_that_ends_have_the_ends_of_the_first_one(offsets: ScriptedOffsets) -> None:
    stream = stream_of()
    stream.prepareForTriggerAvailableNow()
    assert ends_of(stream, a0=5, a1=7) == {"a0": (5, 10), "a1": (7, 20)}
    offsets.logs |= {A: (0, 99), C: (0, 7)}
    # Planned again after a failure; partitions that are new are left to the next query.
    assert ends_of(stream, a0=8, a1=20) == {"a0": (8, 10), "a1": (20, 20)}
    assert stream.knownPartitions == {A, B}
    assert stream.planInputPartitions(KafkaSourceOffset({A: 10, B: 20})) == []


def test_new_partition_of_a_run_that_ends_is_read_from_its_first_offset(offsets: ScriptedOffsets) -> None:
    offsets.logs[C] = (90, 100)
    stream = stream_of()
    stream.prepareForTriggerAvailableNow()
    assert ends_of(stream, a0=10, a1=20) == {"a0": (10, 10), "a1": (20, 20), "c0": (90, 100)}


def test_run_that_ends_reports_a_log_that_is_shorter_than_what_was_read(caplog: pytest.LogCaptureFixture) -> None:
    stream = stream_of()
    stream.prepareForTriggerAvailableNow()
    with pytest.raises(DataLossError, match="PARTITION_OFFSET_CHANGED"):
        ends_of(stream, a0=12, a1=7)
    tolerant = stream_of(fail_on_data_loss=False)
    tolerant.prepareForTriggerAvailableNow()
    assert ends_of(tolerant, a0=12, a1=7) == {"a0": (10, 10), "a1": (7, 20)}
    (warning,) = warnings_of(caplog)
    assert "the offset to continue from was 12, but the log now ends at 10" in warning


def test_topic_that_is_recreated_within_a_run_that_ends_is_left_to_the_next_query(offsets: ScriptedOffsets) -> None:
    offsets.logs[C] = (0, 50)
    stream = stream_of(fail_on_data_loss=False)
    stream.prepareForTriggerAvailableNow()
    assert ends_of(stream, a0=5, a1=7, c0=3) == {"a0": (5, 10), "a1": (7, 20), "c0": (3, 50)}
    offsets.topic_ids["c"], offsets.logs[C] = "other", (0, 2)
    assert ends_of(stream, a0=5, a1=7, c0=3) == {"a0": (5, 10), "a1": (7, 20)}
    following = stream_of(fail_on_data_loss=False)
    assert starts_of(following, a0=10, a1=20) == [{"a0": 10}, {"a1": 20}, {"c0": 0}]


def test_positions_of_readers_are_one_offset() -> None:
    class Other(PartitionOffset):
        def json(self) -> str:
            return "{}"

    stream = stream_of()
    first, second = KafkaSourcePartitionOffset({B: 9, A: 3}), KafkaSourcePartitionOffset({C: 1})
    assert stream.mergeOffsets([first, second]) == KafkaSourceOffset({A: 3, B: 9, C: 1})
    assert stream.mergeOffsets([]) == KafkaSourceOffset({})
    assert first.json() == '{"a":{"0":3,"1":9}}'
    assert stream.deserializePartitionOffset(first.json()) == first
    with pytest.raises(CheckpointError):
        stream.deserializePartitionOffset('{"shards":3}')
    with pytest.raises(ContractError, match="takes each partition from one reader, and got a-0 from two"):
        stream.mergeOffsets([first, KafkaSourcePartitionOffset({C: 1, A: 3})])
    with pytest.raises(ContractError, match="got a Other"):
        stream.mergeOffsets([Other()])


def test_offset_of_another_source_is_refused() -> None:
    class Other:
        def json(self) -> str:
            return '{"shard":3}'

    with pytest.raises(CheckpointError, match=r'Expected an offset of a Kafka source, got \{"shard":3\}'):
        stream_of().planInputPartitions(Other())


def test_new_partition_asks_for_a_plan_at_once(offsets: ScriptedOffsets) -> None:
    stream = stream_of()
    assert not stream.needsReconfiguration()
    assert offsets.asked == []
    starts_of(stream, a0=5, a1=7)
    assert not stream.needsReconfiguration()
    assert offsets.asked[-1] == "partitions of a within 2000 ms"
    offsets.logs[TopicPartition("a", 2)] = (0, 1)
    assert stream.needsReconfiguration()
    assert stream.needsReconfiguration()
    starts_of(stream, a0=5, a1=7)
    assert not stream.needsReconfiguration()


@pytest.mark.parametrize("kind", ["subscribePattern", "subscribe"])
def test_pattern_asks_for_all_topics_as_often_as_javas_consumers_do(offsets: ScriptedOffsets, kind: str) -> None:
    clock = Clock()
    listed = Subscription("subscribe", ("a", "c"))
    stream = stream_of(clock, subscription=PATTERN if kind == "subscribePattern" else listed)
    starts_of(stream, a0=5, a1=7)
    offsets.logs[C] = (0, 1)
    if kind == "subscribe":
        assert stream.needsReconfiguration()
        return
    clock.now += 299
    assert not stream.needsReconfiguration()
    clock.now += 1
    assert stream.needsReconfiguration()
    assert offsets.asked[-1] == "partitions within 2000 ms"
    starts_of(stream, a0=5, a1=7, c0=0)
    assert not stream.needsReconfiguration()
    assert offsets.asked[-1] == "partitions of a, c within 2000 ms"


@pytest.mark.parametrize("change", ["partition", "topic id", "unknown topic"])
def test_missing_partition_and_recreated_topic_ask_for_a_plan_after_several_looks(
    offsets: ScriptedOffsets, change: str
) -> None:
    stream = stream_of(subscription=Subscription("subscribe", ("a",)))
    starts_of(stream, a0=5, a1=7)

    def look() -> bool:
        if change == "unknown topic":
            offsets.failures = [BrokerError("gone", code=3, condition="UNKNOWN_TOPIC", parameters={"topic": "a"})]
        return stream.needsReconfiguration()

    if change == "partition":
        del offsets.logs[B]
    elif change == "topic id":
        offsets.topic_ids["a"] = "other"
    assert [look(), look()] == [False, False]
    # A broker that lags: what the next one says counts.
    before, offsets.logs, offsets.topic_ids, offsets.failures = offsets.logs, {A: (0, 1), B: (0, 1)}, {}, []
    assert not stream.needsReconfiguration()
    offsets.logs = before
    offsets.topic_ids = {"a": "other"} if change == "topic id" else {}
    assert [look(), look(), look()] == [False, False, True]


def test_failed_check_reports_no_change_and_delays_the_next_checks(
    offsets: ScriptedOffsets, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    stream = stream_of(clock)
    starts_of(stream, a0=5, a1=7)
    offsets.logs[TopicPartition("a", 2)] = (0, 1)
    looks = offsets.asked.count
    offsets.failures = [DeadlineError("no response", condition="DEADLINE_EXCEEDED")] * 20
    for _ in range(40):
        assert not stream.needsReconfiguration()
        clock.now += 1
    # After about 1, 2, 4 and 8 s, and then every 10 s.
    assert 5 <= looks("partitions of a within 2000 ms") <= 9
    (warning,) = [record.getMessage() for record in caplog.records if record.name == LOGGER]
    assert warning.startswith("A look whether the partitions of KafkaSource[SubscribePattern[.]] have changed failed, ")
    assert said(warning[warning.index("[DEADLINE") :]) == "[DEADLINE_EXCEEDED] no response"
    offsets.failures = []
    clock.now += 10
    assert stream.needsReconfiguration()


def test_options_of_micro_batches_have_no_effect_and_are_named(caplog: pytest.LogCaptureFixture) -> None:
    stream = stream_of(max_offsets_per_trigger=1, min_partitions=7)
    assert starts_of(stream, a0=5, a1=7) == [{"a0": 5}, {"a1": 7}]
    assert warnings_of(caplog) == [
        f"Option '{name}' has no effect in a continuous read, which has no micro-batches."
        for name in ("maxOffsetsPerTrigger", "minPartitions")
    ]


def test_stream_is_named_and_has_nothing_to_commit_or_release() -> None:
    stream = stream_of()
    assert repr(stream) == "KafkaSource[SubscribePattern[.]]"
    stream.commit(KafkaSourceOffset({A: 5}))
    stream.stop()
    stream.stop()


def test_factory_refuses_the_input_partition_of_another_kind_of_read() -> None:
    factory = stream_of().createContinuousReaderFactory()
    assert pickle.loads(pickle.dumps(factory)) == factory  # noqa: S301 - our own bytes
    with pytest.raises(TypeError, match="expected a KafkaContinuousInputPartition, got str"):
        factory.createReader("split")  # type: ignore[arg-type]
