"""Which partitions a subscription means, and how often look-ups are tried, with a client in memory."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from pyspark_kafka._base.model import IsolationLevel, TopicPartition
from pyspark_kafka._base.offsets import AtTimestamp, Earliest, Latest
from pyspark_kafka._client.client.cluster.metadata import (
    ClusterMetadata,
    PartitionMetadata,
    TopicMetadata,
    unknown_topic,
)
from pyspark_kafka._client.client.queries import leader_epochs
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.options import ConnectionOptions, Subscription
from pyspark_kafka._connector.source.driver import offset_reader
from pyspark_kafka._connector.source.driver.offset_reader import KafkaOffsetReader
from pyspark_kafka.errors import AccessError, BrokerError, ConnectorError, DeadlineError, TransportError


class FakeClient:
    """Topics with their numbers of partitions; every offset is its partition's number.

    Attributes:
        failures: raised first, one a call.
        failures_of_offsets: raised first by look-ups of offsets.
        after: the partitions that there are from the call of this number on.
        ends: answers to look-ups of ends that come before the partition's number, one a call.
        times: the offsets by time there are.
        log_ends: the ends of logs that leaders return for their epoch.
        avoided: how often another broker was to be asked.
    """

    options = ConnectionOptions((("b", 9092),))

    def __init__(self) -> None:
        self.partitions = {"orders": 2, "orders-eu": 1, "other": 1, "__consumer_offsets": 1}
        self.failures: list[ConnectorError] = []
        self.failures_of_offsets: list[ConnectorError] = []
        self.after: dict[int, dict[str, int]] = {}
        self.ends: list[dict[TopicPartition, int]] = []
        self.times: dict[TopicPartition, int] = {}
        self.log_ends: dict[TopicPartition, int] = {}
        self.avoided = 0
        self.calls: list[Any] = []

    def deadline(self) -> Deadline:
        return Deadline(1_000)

    def fetch_metadata(self, topics: Iterable[str] | None, deadline: Deadline | None = None) -> ClusterMetadata:  # noqa: ARG002 - the client's
        names = sorted(self.partitions) if topics is None else sorted(topics)
        self._called(("metadata", None if topics is None else names))
        return ClusterMetadata({}, {name: self._topic(name) for name in names})

    def list_offsets(
        self, specs: Mapping[TopicPartition, Earliest | Latest | AtTimestamp], isolation_level: IsolationLevel
    ) -> dict[TopicPartition, int]:
        self._called(("list_offsets", dict(specs), isolation_level))
        if self.failures_of_offsets:
            raise self.failures_of_offsets.pop(0)
        if any(isinstance(spec, AtTimestamp) for spec in specs.values()):
            return self.times
        if self.ends and Latest() in specs.values():
            return self.ends.pop(0)
        return {topic_partition: topic_partition.partition for topic_partition in specs}

    def avoid_last_asked(self) -> None:
        self.avoided += 1

    def fetch_log_ends(self, partitions: Iterable[TopicPartition], _: Deadline) -> dict[TopicPartition, int]:
        self.calls.append("log ends")
        return {tp: self.log_ends[tp] for tp in partitions if tp in self.log_ends}

    def _called(self, call: Any) -> None:
        self.calls.append(call)
        self.partitions = self.after.pop(len(self.calls), self.partitions)
        if self.failures:
            raise self.failures.pop(0)

    def _topic(self, name: str) -> TopicMetadata:
        count = self.partitions.get(name, 0)
        partitions = tuple(PartitionMetadata(TopicPartition(name, number), 1, 0) for number in range(count))
        return TopicMetadata(name, None, name.startswith("__"), partitions, error_code=0 if count else 3)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    fake = FakeClient()

    @contextmanager
    def borrow(_: ConnectionOptions) -> Iterator[FakeClient]:
        yield fake

    monkeypatch.setattr(offset_reader, "borrow_client", borrow)
    monkeypatch.setattr(offset_reader, "_list_offsets", FakeClient.list_offsets)
    monkeypatch.setattr(leader_epochs, "fetch_log_ends", FakeClient.fetch_log_ends)
    return fake


def reader_of(subscription: Subscription, attempts: int = 3) -> KafkaOffsetReader:
    connection = ConnectionOptions((("not-asked", 9092),), retry_backoff_ms=1, retry_backoff_max_ms=2)
    return KafkaOffsetReader(
        connection, subscription, IsolationLevel.READ_COMMITTED, attempts=attempts, retry_interval_ms=0
    )


ORDERS = Subscription("subscribe", ("orders",))


@pytest.mark.parametrize(
    ("subscription", "expected"),
    [
        (Subscription("subscribe", ("orders", "other")), ["orders-0", "orders-1", "other-0"]),
        (Subscription("subscribe", ("__consumer_offsets",)), ["__consumer_offsets-0"]),
        (
            Subscription("assign", topic_partitions=(TopicPartition("__consumer_offsets", 0),)),
            ["__consumer_offsets-0"],
        ),
        # Searched, not matched whole; internal topics never.
        (Subscription("subscribePattern", pattern="rder"), ["orders-0", "orders-1", "orders-eu-0"]),
        (Subscription("subscribePattern", pattern="^orders$"), ["orders-0", "orders-1"]),
        (Subscription("subscribePattern", pattern=".*"), ["orders-0", "orders-1", "orders-eu-0", "other-0"]),
        (Subscription("subscribePattern", pattern="nothing"), []),
        (Subscription("assign", topic_partitions=(TopicPartition("orders", 1),)), ["orders-1"]),
    ],
)
def test_a_subscription_means_the_partitions_there_are_now(
    client: FakeClient, subscription: Subscription, expected: list[str]
) -> None:
    assert [str(found) for found in reader_of(subscription).fetch_assigned_partitions()] == expected
    assert len(client.calls) == 1


def test_glance_at_some_topics_asks_for_these_alone_and_leaves_out_missing_ones(client: FakeClient) -> None:
    reader = reader_of(Subscription("subscribePattern", pattern="."))
    found = reader.find_assignment_once(500, {"orders", "gone"})
    assert [str(each) for each in found.partitions] == ["orders-0", "orders-1"]
    assert client.calls == [("metadata", ["gone", "orders"])]


def test_assigned_partitions_that_do_not_exist_are_left_out_and_named(
    client: FakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    listed = (TopicPartition("orders", 0), TopicPartition("orders", 9))
    with caplog.at_level(logging.WARNING):
        reader = reader_of(Subscription("assign", topic_partitions=listed))
        found = reader.fetch_assigned_partitions()
        assert reader.fetch_assigned_partitions() == found
    assert found == listed[:1]
    # Once, however often the query asks.
    assert caplog.text.count("partitions that do not exist: orders-9. They are ignored.") == 1
    assert client.calls == [("metadata", ["orders"])] * 2


@pytest.mark.parametrize(
    "subscription",
    [
        Subscription("subscribe", ("gone", "orders")),
        Subscription("assign", topic_partitions=(TopicPartition("gone", 0),)),
    ],
)
def test_a_named_topic_that_does_not_exist_is_an_error(client: FakeClient, subscription: Subscription) -> None:
    with pytest.raises(
        BrokerError, match=r"\[UNKNOWN_TOPIC\] Topic 'gone' does not exist in the cluster of b:9092, or .* Hint: Check"
    ):
        reader_of(subscription).fetch_assigned_partitions()
    # A broker that starts knows nothing yet, and one that was not asked to create it learns of it later. The last look
    # is for a name that was perhaps meant.
    assert [names is None for _, names in client.calls] == [False] * 4 + [True]


def test_a_topic_that_the_query_has_read_is_looked_for_longer(client: FakeClient) -> None:
    gone = Subscription("subscribe", ("gone", "orders"))
    with pytest.raises(BrokerError, match=r"\[UNKNOWN_TOPIC\]"):
        reader_of(gone).fetch_assigned_latest_offsets({TopicPartition("gone", 0): 7})
    assert len(client.calls) == 12


def test_topic_that_is_missing_in_the_first_metadata_is_found(client: FakeClient) -> None:
    partitions = client.partitions
    reader = reader_of(Subscription("subscribe", ("orders",)))
    client.partitions = {}
    client.after = {3: partitions}
    assert len(reader.fetch_assigned_partitions()) == 2
    assert len(client.calls) == 3


@pytest.mark.parametrize("kind", ["latest", "earliest of new"])
def test_partitions_are_listed_anew_where_a_topic_goes_away_before_its_offsets_are_looked_up(
    client: FakeClient, kind: str
) -> None:
    reader = reader_of(Subscription("subscribePattern", pattern="^orders"))
    left = [TopicPartition("orders", 0), TopicPartition("orders", 1)]
    client.failures_of_offsets = [unknown_topic("orders-eu")]
    client.after = {2: {"orders": 2}}
    if kind == "latest":
        assignment, found = reader.fetch_assigned_latest_offsets()
        assert assignment.partitions == tuple(left)
    else:
        found = reader.fetch_earliest_offsets_of_new([*left, TopicPartition("orders-eu", 0)])
    assert found == {left[0]: 0, left[1]: 1}
    # The second listing looks whether the topic is gone, or hidden.
    assert [call[0] for call in client.calls] == ["metadata", "list_offsets", "metadata", "metadata", "list_offsets"]


def test_a_missing_topic_is_left_out_until_it_comes_back_where_that_is_asked_for(client: FakeClient) -> None:
    reader = reader_of(Subscription("subscribe", ("gone", "orders")))
    reader.leave_out_missing("gone")
    assert [str(found) for found in reader.fetch_assigned_partitions()] == ["orders-0", "orders-1"]
    client.partitions["gone"] = 1
    assert [str(found) for found in reader.fetch_assigned_partitions()] == ["gone-0", "orders-0", "orders-1"]
    del client.partitions["gone"]
    with pytest.raises(BrokerError, match=r"\[UNKNOWN_TOPIC\]"):
        reader.fetch_assigned_partitions()


def test_offsets_are_asked_for_under_the_isolation_level(client: FakeClient) -> None:
    reader, wanted = reader_of(ORDERS), [TopicPartition("orders", 0), TopicPartition("orders", 1)]
    assert reader.fetch_earliest_offsets(wanted) == {wanted[0]: 0, wanted[1]: 1}
    assert reader.fetch_latest_offsets(iter(wanted)) == {wanted[0]: 0, wanted[1]: 1}
    assert client.calls == [
        ("list_offsets", dict.fromkeys(wanted, Earliest()), IsolationLevel.READ_COMMITTED),
        ("list_offsets", dict.fromkeys(wanted, Latest()), IsolationLevel.READ_COMMITTED),
    ]


def test_look_up_of_no_partitions_sends_no_request(client: FakeClient) -> None:
    reader = reader_of(ORDERS)
    assert (
        reader.fetch_earliest_offsets([]),
        reader.fetch_latest_offsets([]),
        reader.fetch_earliest_offsets_of_new([]),
    ) == ({}, {}, {})
    assert client.calls == []


def test_new_partitions_that_are_gone_again_are_left_out(client: FakeClient) -> None:
    new = [TopicPartition("orders-eu", 0), TopicPartition("orders-us", 0)]
    pattern = Subscription("subscribePattern", pattern="orders")
    assert reader_of(pattern).fetch_earliest_offsets_of_new(iter(new)) == {new[0]: 0}
    assert client.calls[-1] == ("list_offsets", {new[0]: Earliest()}, IsolationLevel.READ_COMMITTED)


def retriable() -> BrokerError:
    return BrokerError("try again", code=5, condition="LEADER_NOT_AVAILABLE", retriable=True)


def test_retriable_failure_is_tried_again_as_often_as_the_option_says(
    client: FakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    client.failures = [retriable(), retriable()]
    with caplog.at_level(logging.WARNING):
        assert len(reader_of(ORDERS).fetch_assigned_partitions()) == 2
    assert len(client.calls) == 3
    assert [record.getMessage().split(":")[0] for record in caplog.records] == [
        "listing partitions failed at attempt 1 of 3",
        "listing partitions failed at attempt 2 of 3",
    ]
    client.failures = [retriable(), retriable()]
    with pytest.raises(BrokerError, match="try again"):
        reader_of(ORDERS, attempts=2).fetch_assigned_partitions()
    assert client.failures == []


@pytest.mark.parametrize(
    "failure",
    [
        # The client has waited its whole deadline already.
        TransportError("not reached", condition="BOOTSTRAP_FAILED", retriable=True),
        DeadlineError("too late", condition="DEADLINE", retriable=True),
        AccessError("no", code=58, condition="SASL_AUTHENTICATION_FAILED"),
        BrokerError("never", code=42, condition="INVALID_REQUEST"),
    ],
)
def test_lasting_failure_is_raised_at_once(client: FakeClient, failure: ConnectorError) -> None:
    client.failures = [failure]
    with pytest.raises(type(failure)) as caught:
        reader_of(ORDERS).fetch_assigned_partitions()
    assert caught.value is failure
    assert len(client.calls) == 1


def stream_reader() -> KafkaOffsetReader:
    connection = ConnectionOptions((("not-asked", 9092),))
    return KafkaOffsetReader(
        connection, ORDERS, IsolationLevel.READ_COMMITTED, attempts=1, retry_interval_ms=0, outage_timeout_ms=60_000
    )


def outage() -> list[ConnectorError]:
    return [
        TransportError("not reached", condition="BOOTSTRAP_FAILED", retriable=True),
        DeadlineError("too late", condition="DEADLINE_EXCEEDED", retriable=True),
        retriable(),
    ]


def test_a_stream_that_has_looked_up_waits_an_outage_out(client: FakeClient) -> None:
    reader = stream_reader()
    wanted = reader.fetch_assigned_partitions()
    client.failures = outage()
    assert reader.fetch_assigned_partitions() == wanted
    client.failures = outage()
    assert set(reader.fetch_latest_offsets(wanted)) == set(wanted)
    assert client.failures == []


def test_a_stream_that_never_looked_up_fails_at_once(client: FakeClient) -> None:
    client.failures = outage()
    with pytest.raises(TransportError, match="not reached"):
        stream_reader().fetch_assigned_partitions()
    assert len(client.calls) == 1


def test_lasting_failure_ends_a_stream_that_has_run(client: FakeClient) -> None:
    reader = stream_reader()
    reader.fetch_assigned_partitions()
    client.failures = [*outage(), AccessError("no", code=58, condition="SASL_AUTHENTICATION_FAILED")]
    with pytest.raises(AccessError):
        reader.fetch_assigned_partitions()


def test_offsets_by_time_are_those_that_there_are(client: FakeClient) -> None:
    wanted = [TopicPartition("orders", 0), TopicPartition("orders", 1)]
    client.times = {wanted[1]: 7}
    assert reader_of(ORDERS).fetch_offsets_at({wanted[0]: 1_000, wanted[1]: 2_000}) == {wanted[1]: 7}
    assert client.calls == [
        (
            "list_offsets",
            {wanted[0]: AtTimestamp(1_000), wanted[1]: AtTimestamp(2_000)},
            IsolationLevel.READ_COMMITTED,
        )
    ]
    assert reader_of(ORDERS).fetch_offsets_at({}) == {}
    assert len(client.calls) == 1


def test_ends_lower_than_known_offsets_are_looked_up_again(
    client: FakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = TopicPartition("orders", 0), TopicPartition("orders", 1)
    client.ends = [{first: 5, second: 9}, {first: 6}, {first: 8, second: 9}]
    with caplog.at_level(logging.WARNING):
        assignment, found = reader_of(ORDERS).fetch_assigned_latest_offsets({first: 7, second: 9})
    assert found == {first: 8, second: 9}
    assert assignment.partitions == (first, second)
    assert [record.getMessage() for record in caplog.records] == [
        "Latest offsets are lower than known ones, or missing, at attempt 1 of 3: orders-0 ends at 5, known is 7"
    ]
    # With the partitions that there are then, and first the leader's log and what is hidden in it.
    once = ["metadata", "list_offsets"]
    assert [call if isinstance(call, str) else call[0] for call in client.calls] == [
        *once,
        "list_offsets",
        "log ends",
        *once,
    ]
    assert client.avoided == 0


def test_ends_that_stay_lower_are_believed_in_the_end(client: FakeClient, caplog: pytest.LogCaptureFixture) -> None:
    topic_partition = TopicPartition("orders", 0)
    client.ends = [{topic_partition: end} for end in (1, 1, 2, 2, 3, 3, 100)]
    client.log_ends = {topic_partition: 6}
    with caplog.at_level(logging.WARNING):
        assert reader_of(ORDERS, attempts=3).fetch_latest_offsets([topic_partition], {topic_partition: 7}) == {
            topic_partition: 3
        }
    assert len(caplog.records) == 3
    assert reader_of(ORDERS, attempts=1).fetch_latest_offsets([topic_partition]) == {topic_partition: 100}


@pytest.mark.parametrize(("uncommitted", "log_end"), [(7, None), (9, None), (2, 7), (2, 9)])
def test_end_that_is_only_not_visible_is_the_known_end(
    client: FakeClient, caplog: pytest.LogCaptureFixture, uncommitted: int, log_end: int | None
) -> None:
    """An open transaction hides records from `read_committed`; a new leader hides the last ones from everyone."""
    topic_partition = TopicPartition("orders", 0)
    client.ends = [{topic_partition: 2}, {topic_partition: uncommitted}] * 2
    if log_end is not None:
        client.log_ends = {topic_partition: log_end}
    reader = reader_of(ORDERS)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert reader.fetch_latest_offsets([topic_partition], {topic_partition: 7}) == {topic_partition: 7}
    # Once, however often the query asks; and without another attempt.
    assert [record.getMessage() for record in caplog.records] == [
        (
            "The visible ends of logs are lower than known ones, and the logs reach the known ones: orders-0 ends at "
            "2, known is 7. An open transaction, or a new leader, hides the records between them. The query stays at "
            "its positions."
        )
    ]


def test_known_end_in_a_recreated_topic_is_not_asked_for(client: FakeClient) -> None:
    topic_partition = TopicPartition("orders", 0)
    client.ends = [{topic_partition: 2}]
    reader = reader_of(ORDERS, attempts=1)
    _, found = reader.fetch_assigned_latest_offsets({topic_partition: 7}, {"orders": "the former"})
    assert found == {topic_partition: 2}
    assert [call[0] for call in client.calls] == ["metadata", "list_offsets"]


def test_known_partition_that_is_not_listed_is_looked_for_on_another_broker(
    client: FakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker that lags lists fewer topics, and fewer partitions."""
    known = {TopicPartition("orders", number): 0 for number in range(2)}
    client.partitions["orders"] = 1
    client.after = {3: {"orders": 2}}
    with caplog.at_level(logging.WARNING):
        assignment, _ = reader_of(Subscription("subscribePattern", pattern="^orders$")).fetch_assigned_latest_offsets(
            known
        )
    assert assignment.partitions == tuple(known)
    assert client.avoided == 1
    assert [record.getMessage() for record in caplog.records] == [
        (
            "Latest offsets are lower than known ones, or missing, at attempt 1 of 3: orders-1 ends at an unknown "
            "offset, known is 0"
        )
    ]


def test_known_partition_that_stays_missing_is_waited_for_once(client: FakeClient) -> None:
    known = {TopicPartition("orders", number): 0 for number in range(3)}
    reader = reader_of(ORDERS)
    for looks in (3, 4):
        assert len(reader.fetch_assigned_latest_offsets(known)[1]) == 2
        assert [call[0] for call in client.calls].count("metadata") == looks
