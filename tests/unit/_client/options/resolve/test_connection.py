"""Servers and client properties."""

from __future__ import annotations

import pytest

from kit.raw_options import refused
from kit.texts import said
from pyspark_kafka._base.model import IsolationLevel
from pyspark_kafka._client.options import (
    ConnectionOptions,
    FetchOptions,
    parse_batch_read_options,
    parse_stream_read_options,
)

SERVERS = {"kafka.bootstrap.servers": "b:9092"}

READ = {**SERVERS, "subscribe": "t"}


def test_client_properties_reach_their_fields() -> None:
    options = parse_batch_read_options(
        {
            **READ,
            "kafka.client.id": "me",
            "kafka.client.rack": "r1",
            "kafka.request.timeout.ms": "1",
            "kafka.default.api.timeout.ms": "2",
            "kafka.socket.connection.setup.timeout.ms": "3",
            "kafka.retry.backoff.ms": "4",
            "kafka.retry.backoff.max.ms": "5",
            "kafka.metadata.max.age.ms": "6",
            "kafka.receive.buffer.bytes": "-1",
            "kafka.send.buffer.bytes": "8",
            "kafka.isolation.level": "READ_COMMITTED",
            "kafka.fetch.max.bytes": "9",
            "kafka.max.partition.fetch.bytes": "10",
            "kafka.fetch.min.bytes": "11",
            "kafka.fetch.max.wait.ms": "12",
            "kafka.check.crcs": "false",
            "kafka.group.id": "g",
            "kafkaConsumer.pollTimeoutMs": "13",
            "fetchOffset.numRetries": "14",
            "fetchOffset.retryIntervalMs": "15",
            "maxBufferedBytesPerTask": str(1 << 20),
            "maxDecompressedBatchBytes": "1024",
        }
    )
    assert options.connection == ConnectionOptions(
        (("b", 9092),),
        client_id="me",
        client_rack="r1",
        request_timeout_ms=1,
        api_timeout_ms=2,
        connect_timeout_ms=3,
        retry_backoff_ms=4,
        retry_backoff_max_ms=5,
        metadata_max_age_ms=6,
        receive_buffer_bytes=-1,
        send_buffer_bytes=8,
    )
    assert options.fetch == FetchOptions(
        max_bytes_per_fetch=9,
        max_partition_fetch_bytes=10,
        min_bytes=11,
        max_wait_ms=12,
        isolation_level=IsolationLevel.READ_COMMITTED,
        check_crcs=False,
        max_decompressed_bytes=1024,
        max_buffered_bytes=1 << 20,
        poll_timeout_ms=13,
    )
    assert (options.fetch_offset_attempts, options.fetch_offset_retry_interval_ms, options.group_id) == (14, 15, "g")


@pytest.mark.parametrize(
    ("text", "servers"),
    [
        ("a:1", (("a", 1),)),
        (" a:1 ,, b:65535,a:1", (("a", 1), ("b", 65535))),
        ("[::1]:9092,[2001:db8::2]:1", (("::1", 9092), ("2001:db8::2", 1))),
        ("PLAINTEXT://a:1", (("a", 1),)),
        ("10.0.0.1:9092", (("10.0.0.1", 9092),)),
    ],
)
def test_bootstrap_servers(text: str, servers: tuple[tuple[str, int], ...]) -> None:
    assert parse_batch_read_options({**READ, "kafka.bootstrap.servers": text}).connection.bootstrap_servers == servers


@pytest.mark.parametrize(
    "text", ["a", "a:", ":1", "a:0", "a:65536", "a:1:2", "::1", "[::1]", "a b:1", "a:x", "", " , "]
)
def test_malformed_bootstrap_servers_are_refused(text: str) -> None:
    error = refused(parse_batch_read_options, {**READ, "kafka.bootstrap.servers": text})
    assert error.condition == "OPTION_INVALID"
    assert "Option 'kafka.bootstrap.servers' must" in str(error)


def test_missing_servers_name_the_option_and_how_to_set_it() -> None:
    assert said(refused(parse_batch_read_options, {"subscribe": "t"})) == (
        "[OPTION_MISSING] Option 'kafka.bootstrap.servers' must be set: it says where the Kafka brokers are. Hint: "
        'Set it: .option("kafka.bootstrap.servers", "host1:9092,host2:9092").'
    )


def test_options_that_are_all_missing_may_be_the_options_of_a_table() -> None:
    text = str(refused(parse_batch_read_options, {}))
    assert "If this is a table of SQL: Spark does not pass the options of a table to its queries. Create a view" in text


_AGE = "partition.metadata.cache.ttl.ms"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, 300_000),
        ({_AGE: "-1"}, 300_000),
        ({_AGE: "30000"}, 30_000),
        ({_AGE: "30000", "kafka.metadata.max.age.ms": "60000"}, 60_000),
        ({_AGE.upper(): "1"}, 1),
    ],
)
def test_age_of_partitions_is_that_of_metadata_unless_it_is_given(given: dict[str, str], expected: int) -> None:
    assert parse_stream_read_options({**READ, **given}).connection.metadata_max_age_ms == expected


@pytest.mark.parametrize("text", ["0", "-2", "-100"])
def test_age_of_partitions_is_positive_or_off(text: str) -> None:
    error = refused(parse_stream_read_options, {**READ, _AGE: text})
    assert f"Option '{_AGE}' must be" in str(error)
