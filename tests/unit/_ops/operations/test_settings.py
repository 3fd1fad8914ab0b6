"""Options of readers, writers and both, resolved for a check."""

from __future__ import annotations

import pytest

from pyspark_kafka._base.model import IsolationLevel
from pyspark_kafka._client.options import StreamReadOptions
from pyspark_kafka._ops.operations.settings import resolve_settings, with_prefixes
from pyspark_kafka.errors import OptionError

SERVERS = {"kafka.bootstrap.servers": "a:1"}


def test_client_properties_take_their_prefix_and_other_names_stay() -> None:
    given = {"bootstrap.servers": "a:1", "Security.Protocol": "SSL", "topic": "t", "nobody.knows": "1"}
    assert with_prefixes(given) == {
        "kafka.bootstrap.servers": "a:1",
        "kafka.Security.Protocol": "SSL",
        "topic": "t",
        "nobody.knows": "1",
    }


def test_options_of_a_connection_alone_are_neither_of_a_reader_nor_of_a_writer() -> None:
    found = resolve_settings({"bootstrap.servers": "a:1"}, ("t",))
    assert (found.read, found.write, found.topics) == (None, None, ("t",))
    assert found.connection.bootstrap_servers == (("a", 1),)


def test_options_of_a_reader_and_a_writer_are_resolved_each_by_itself() -> None:
    given = {**SERVERS, "subscribe": "in", "maxOffsetsPerTrigger": "5", "topic": "out", "kafka.acks": "1"}
    given["kafka.enable.idempotence"] = "false"
    found = resolve_settings(given)
    assert isinstance(found.read, StreamReadOptions)
    assert found.read.max_offsets_per_trigger == 5
    assert found.write is not None
    assert (found.write.topic, found.write.producer.acks) == ("out", 1)


def test_isolation_level_counts_without_a_subscription_and_other_options_of_readers_are_named() -> None:
    found = resolve_settings({"bootstrap.servers": "a:1", "Isolation.Level": "read_committed", "startingOffsets": "x"})
    assert (found.read, found.write) == (None, None)
    assert (found.isolation_level, found.unused) == (IsolationLevel.READ_COMMITTED, ("startingOffsets",))
    with_subscription = resolve_settings({**SERVERS, "subscribe": "t", "kafka.isolation.level": "read_committed"})
    assert (with_subscription.isolation_level, with_subscription.unused) == (IsolationLevel.READ_COMMITTED, ())
    assert resolve_settings(SERVERS).isolation_level is IsolationLevel.READ_UNCOMMITTED
    for more in ({}, {"topic": "t"}):
        with pytest.raises(OptionError, match=r"'kafka.isolation.level' .*must be one of"):
            resolve_settings({**SERVERS, "kafka.isolation.level": "committed", **more})


def test_a_streaming_exactly_once_writer_is_resolved_as_a_stream() -> None:
    given = {**SERVERS, "topic": "t", "deliveryGuarantee": "exactly_once", "checkpointLocation": "/c"}
    found = resolve_settings(given)
    assert found.write is not None
    assert found.write.exactly_once is not None


def test_all_problems_of_reader_and_writer_are_told_at_once_and_each_once() -> None:
    with pytest.raises(OptionError) as caught:
        resolve_settings({"subscribe": "in", "topic": "a b", "minPartitions": "x", "foo": "1"})
    told = [message for message, _ in caught.value.problems]
    assert len(told) == len(set(told)) == 4
    for name in ("foo", "minPartitions", "topic", "kafka.bootstrap.servers"):
        assert sum(f"'{name}'" in message for message in told) == 1


def test_one_problem_keeps_its_condition() -> None:
    with pytest.raises(OptionError) as caught:
        resolve_settings({**SERVERS, "subscribe": "in", "startingOffset": "earliest"})
    assert (caught.value.condition, caught.value.hint) == ("OPTION_UNKNOWN", "Did you mean 'startingOffsets'?")


def test_time_of_requests_is_limited_by_that_of_a_step() -> None:
    limited = resolve_settings({**SERVERS, "kafka.request.timeout.ms": "500"}).with_time(2_000)
    given = limited.connection
    assert (given.request_timeout_ms, given.connect_timeout_ms, given.api_timeout_ms) == (500, 2_000, 2_000)
