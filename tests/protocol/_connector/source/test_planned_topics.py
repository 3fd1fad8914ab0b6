"""The topic that a task was planned on travels with its ranges: no attempt and no worker takes another one for it."""

from __future__ import annotations

import logging
import pickle
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from kit import reading
from kit.fakes.handlers.fetch import BrokerLog
from kit.fakes.logs import batches_of
from kit.fakes.tcp_cluster import TcpCluster
from kit.fixtures.offsets import ScriptedOffsets
from kit.reading import FAST_FETCH
from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._base.offsets import Earliest, Latest, SpecificOffsets
from pyspark_kafka._client.client.cluster.pool import close_clients
from pyspark_kafka._client.client.fetch.errors import TopicRecreatedError
from pyspark_kafka._client.client.wire.messages import FetchRequest, MetadataRequest
from pyspark_kafka._client.options import BatchReadOptions, ConnectionOptions, StreamReadOptions, Subscription
from pyspark_kafka._connector.source.driver.batch import KafkaBatch
from pyspark_kafka._connector.source.driver.micro_batch import KafkaMicroBatchStream
from pyspark_kafka._connector.source.executor.columns import SOURCE_SCHEMA
from pyspark_kafka._connector.source.input_partition import KafkaInputPartition
from pyspark_kafka.connector import InputPartition, ReadAllAvailable
from pyspark_kafka.errors import DataLossError

SCHEMA = pa.schema([SOURCE_SCHEMA.field("topic"), SOURCE_SCHEMA.field("offset")])
T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


@pytest.fixture
def cluster() -> Iterator[TcpCluster]:
    with TcpCluster() as cluster:
        for topic in ("t", "u"):
            cluster.add_topic(topic)
            cluster.ends[topic, 0] = (0, 30)
        log = BrokerLog({("t", 0): batches_of(3), ("u", 0): batches_of(3)}, cluster.topic_ids)

        def by_id(request: Any) -> Any:
            """Refuse what is asked for by an id that no topic has, as a broker does."""
            log.errors, ids = {}, dict(cluster.topic_ids)
            for topic in request.topics:
                if topic.topic_id not in ids.values():
                    name = next(name for name, known in former.items() if topic.topic_id in known)
                    log.errors[name, 0] = (100, -1, -1)
                    log.topic_ids = {**ids, name: topic.topic_id}
            answer = log(request)
            log.topic_ids = cluster.topic_ids
            return answer

        cluster.script(FetchRequest, by_id)
        yield cluster
        close_clients()
        former.clear()


former: dict[str, set[uuid.UUID]] = {}


def recreate(cluster: TcpCluster, topic: str = "t") -> None:
    former.setdefault(topic, set()).add(cluster.topic_ids[topic])
    cluster.topic_ids[topic] = uuid.uuid4()


def planned(cluster: TcpCluster, *topics: str) -> KafkaInputPartition:
    """Return a task that reads [0, 30) of partition 0 of topics, as planned on those that there are now."""
    first, *further = (OffsetRange(TopicPartition(topic, 0), 0, 30) for topic in topics or ("t",))
    ids = {topic: str(cluster.topic_ids[topic]) for topic in topics or ("t",)}
    return KafkaInputPartition(first, tuple(further), topic_ids=ids)


def read(
    cluster: TcpCluster, task: KafkaInputPartition, *, fail_on_data_loss: bool = True, leaves_recreated: bool = True
) -> list[tuple[str, int]]:
    rows = reading.read(
        cluster.options(),
        task=pickle.loads(pickle.dumps(task)),  # noqa: S301 - our own bytes
        columns=SCHEMA.names,
        fail_on_data_loss=fail_on_data_loss,
        leaves_recreated=leaves_recreated,
        **FAST_FETCH,
    )
    return [(row["topic"], row["offset"]) for row in rows]


def whole(*topics: str) -> list[tuple[str, int]]:
    return [(topic, offset) for topic in topics for offset in range(30)]


@pytest.mark.parametrize("topics", [("t",), ("t", "u")])
def test_warm_worker_that_knew_the_former_topic_reads_a_task_planned_on_the_new_one(
    cluster: TcpCluster, topics: tuple[str, ...]
) -> None:
    assert sorted(read(cluster, planned(cluster, *topics))) == whole(*topics)
    recreate(cluster)
    assert sorted(read(cluster, planned(cluster, *topics))) == whole(*topics)


@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("topics", [("t",), ("u", "t")])
def test_every_attempt_notices_that_its_topic_was_recreated_after_it_was_planned(
    cluster: TcpCluster, topics: tuple[str, ...], *, warm: bool
) -> None:
    task = planned(cluster, *topics)
    if warm:
        read(cluster, task)
    before = cluster.topic_ids["t"]
    recreate(cluster)
    for _ in range(3):
        with pytest.raises(TopicRecreatedError) as caught:
            read(cluster, task)
        assert str(caught.value).startswith(
            "[KAFKA_DATA_LOSS.TOPIC_RECREATED] Topic 't' was recreated after t-0 [0, 30) was planned: "
            f"its id was {before}, and is {cluster.topic_ids['t']} (leader 0). No record of the range was handed out; "
            "the 30 offsets [0, 30) of the former topic are gone"
        )
    # A task that is planned on the new one reads it.
    assert sorted(read(cluster, planned(cluster, "t"))) == whole("t")


@pytest.mark.parametrize("stale_answers", [1, 3])
def test_a_broker_that_lags_behind_a_creation_is_asked_again(cluster: TcpCluster, stale_answers: int) -> None:
    stale = cluster.topic_ids["t"]
    recreate(cluster)
    task = planned(cluster)
    answers = 0

    def lagging(request: Any) -> Any:
        nonlocal answers
        answers += 1
        answer = cluster.metadata(request)
        for topic in answer.topics if answers <= stale_answers else ():
            topic.topic_id = stale
        return answer

    cluster.script(MetadataRequest, lagging)
    assert read(cluster, task) == whole("t")


@pytest.mark.parametrize("topics", [("t",), ("u", "t")])
def test_micro_batch_reads_nothing_of_a_recreated_topic_if_loss_is_tolerated(
    cluster: TcpCluster, caplog: pytest.LogCaptureFixture, topics: tuple[str, ...]
) -> None:
    task = planned(cluster, *topics)
    recreate(cluster)
    with caplog.at_level(logging.WARNING):
        # Planning begins it: read here as well, it would be read twice.
        assert read(cluster, task, fail_on_data_loss=False) == whole(*set(topics) - {"t"})
    (message,) = caplog.messages
    assert message.startswith("[KAFKA_DATA_LOSS.TOPIC_RECREATED] ")
    assert message.endswith(
        "Nothing of the recreated topic is read here, because 'failOnDataLoss' is false; the next batch begins it."
    )


@pytest.mark.parametrize("topics", [("t",), ("u", "t")])
def test_a_batch_read_goes_on_in_the_recreated_topic_where_loss_is_tolerated(
    cluster: TcpCluster, topics: tuple[str, ...]
) -> None:
    task = planned(cluster, *topics)
    recreate(cluster)
    found = read(cluster, task, fail_on_data_loss=False, leaves_recreated=False)
    assert sorted(found) == whole(*sorted(topics))


def ids_of(tasks: Sequence[InputPartition]) -> list[tuple[str, dict[str, str]]]:
    found = []
    for task in tasks:
        assert isinstance(task, KafkaInputPartition)
        found.append((",".join(map(str, task.offset_ranges)), dict(task.topic_ids)))
    return found


def test_a_micro_batch_plans_with_the_ids_of_its_topics(offsets: ScriptedOffsets) -> None:
    offsets.logs = {T0: (0, 5), U0: (0, 4)}
    offsets.topic_ids = {"t": "id-of-t", "u": "id-of-u"}
    connection, subscription = ConnectionOptions((("not-asked", 9092),)), Subscription("subscribe", ("t", "u"))
    options = StreamReadOptions(connection, subscription, starting=Earliest())
    stream = KafkaMicroBatchStream(options, SOURCE_SCHEMA)
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadAllAvailable())
    expected = [("t-0 [0, 5)", {"t": "id-of-t"}), ("u-0 [0, 4)", {"u": "id-of-u"})]
    assert ids_of(stream.planInputPartitions(start, end)) == expected
    # A batch that a former run has planned is guarded as well, by what this run has found.
    again = KafkaMicroBatchStream(options, SOURCE_SCHEMA)
    assert ids_of(again.planInputPartitions(start, again.deserializeOffset(end.json()))) == expected


def test_a_batch_plans_with_the_ids_of_topics_that_it_has_offsets_of(offsets: ScriptedOffsets) -> None:
    offsets.logs = {T0: (0, 5), T1: (0, 4)}
    offsets.topic_ids = {"t": "one"}

    def tasks(starting: Any, ending: Any, **options: Any) -> list[tuple[str, dict[str, str]]]:
        connection, subscription = ConnectionOptions((("not-asked", 9092),)), Subscription("subscribe", ("t",))
        read_options = BatchReadOptions(connection, subscription, starting=starting, ending=ending, **options)
        return ids_of(KafkaBatch(read_options, SOURCE_SCHEMA).planInputPartitions())

    numbers = SpecificOffsets({T0: 1, T1: 2})
    ids = {"t": "one"}
    assert tasks(Earliest(), Latest()) == [("t-0 [0, 5)", {}), ("t-1 [0, 4)", {})]
    assert tasks(numbers, Latest()) == [("t-0 [1, 5)", ids), ("t-1 [2, 4)", ids)]
    assert tasks(Earliest(), numbers) == [("t-0 [0, 1)", ids), ("t-1 [0, 2)", ids)]
    assert tasks(Earliest(), Latest(), max_partitions_per_task=2) == [("t-0 [0, 5),t-1 [0, 4)", ids)]
    split = tasks(Earliest(), Latest(), max_records_per_partition=3)
    assert [task_ids for _, task_ids in split] == [ids] * 4


@pytest.mark.parametrize("fail_on_data_loss", [True, False])
def test_a_topic_that_is_gone_before_a_task_looks_up_its_open_ends_is_data_loss(
    cluster: TcpCluster, caplog: pytest.LogCaptureFixture, *, fail_on_data_loss: bool
) -> None:
    connection = cluster.options()
    subscribed = Subscription("subscribe", topics=("t", "u"))
    read = KafkaBatch(
        BatchReadOptions(
            connection, subscribed, starting=Earliest(), ending=Latest(), fail_on_data_loss=fail_on_data_loss
        ),
        SCHEMA,
    )
    gone, there = read.planInputPartitions()
    del cluster.topic_ids["t"], cluster.leaders["t", 0]
    close_clients()
    factory = read.createReaderFactory()
    reader = factory.createReader(gone)
    if fail_on_data_loss:
        with pytest.raises(DataLossError, match=r"PARTITIONS_DELETED\] t-0 was deleted after the read was planned"):
            reader.next()
    else:
        assert not reader.next()
        assert "t-0 was deleted after the read was planned" in caplog.text
    reader.close()
    reader = factory.createReader(there)
    assert reader.next()
    reader.close()
