"""Options of writes: defaults, producer properties, delivery guarantees."""

from __future__ import annotations

from typing import Any

import pytest

from kit.raw_options import refused
from kit.texts import said
from pyspark_kafka._client.options import (
    ExactlyOnceOptions,
    ProducerOptions,
    parse_write_options,
)

SERVERS = {"kafka.bootstrap.servers": "b:9092"}


def parse_stream_write_options(raw: dict[str, Any]) -> object:
    return parse_write_options(raw, streaming=True)


def test_a_write_has_its_defaults() -> None:
    options = parse_write_options(SERVERS, streaming=True)
    assert options.topic is None
    assert options.producer == ProducerOptions()
    assert (options.producer.acks, options.producer.idempotence) == (-1, True)


def test_producer_properties_reach_their_fields() -> None:
    options = parse_write_options(
        {
            **SERVERS,
            "topic": " out ",
            "kafka.acks": "1",
            "kafka.enable.idempotence": "false",
            "kafka.compression.type": "ZSTD",
            "kafka.compression.zstd.level": "-7",
            "kafka.batch.size": "1000",
            "kafka.max.request.size": "2000",
            "kafka.delivery.timeout.ms": "300",
            "kafka.request.timeout.ms": "200",
            "kafka.max.in.flight.requests.per.connection": "1",
            "kafka.buffer.memory": str(1 << 20),
            "kafka.max.block.ms": "7",
            "identityHeaders": "TRUE",
        },
        streaming=False,
    )
    assert options.topic == "out"
    assert options.producer == ProducerOptions(
        acks=1,
        idempotence=False,
        compression="zstd",
        compression_level=-7,
        batch_size=1000,
        max_request_size=2000,
        delivery_timeout_ms=300,
        request_timeout_ms=200,
        max_in_flight=1,
    )
    assert (options.max_unacknowledged_bytes, options.max_block_ms, options.identity_headers) == (1 << 20, 7, True)
    assert options.notes == ()


@pytest.mark.parametrize("given", ["0", "32768", str((1 << 20) - 1)])
def test_buffer_smaller_than_batches_is_enlarged_with_a_note(given: str) -> None:
    options = parse_write_options({**SERVERS, "topic": "t", "kafka.buffer.memory": given}, streaming=False)
    assert options.max_unacknowledged_bytes == 1 << 20
    assert options.notes == (f"Option 'kafka.buffer.memory' is {given} bytes: 1048576 are used, which batches need.",)


@pytest.mark.parametrize("acks", ["0", "1"])
def test_fewer_acks_need_idempotence_to_be_off(acks: str) -> None:
    error = refused(parse_stream_write_options, {**SERVERS, "kafka.acks": acks})
    assert said(error) == (
        f"[OPTION_CONFLICT] Option 'kafka.acks' is {acks}, but idempotence needs all. Hint: Remove 'kafka.acks', or "
        "set 'kafka.enable.idempotence' to false and accept loss and duplicates."
    )


@pytest.mark.parametrize("acks", ["all", "-1", "ALL"])
def test_all_acks_in_each_spelling(acks: str) -> None:
    assert parse_write_options({**SERVERS, "kafka.acks": acks}, streaming=True).producer.acks == -1


def test_a_level_of_another_codec_is_noted() -> None:
    options = parse_write_options({**SERVERS, "kafka.compression.gzip.level": "3"}, streaming=True)
    assert options.producer.compression_level is None
    assert options.notes == (
        "Option 'kafka.compression.gzip.level' has no effect: 'kafka.compression.type' is 'none'.",
    )


@pytest.mark.parametrize(("level", "resolved"), [("-1", None), ("1", 1), ("9", 9)])
def test_gzip_levels(level: str, resolved: int | None) -> None:
    raw = {**SERVERS, "kafka.compression.type": "gzip", "kafka.compression.gzip.level": level}
    assert parse_write_options(raw, streaming=True).producer.compression_level == resolved


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kafka.compression.gzip.level", "0"),
        ("kafka.compression.type", "brotli"),
        ("kafka.max.in.flight.requests.per.connection", "6"),
        ("kafka.retries", "0"),
        ("kafka.acks", "2"),
    ],
)
def test_producer_values_that_do_not_fit_are_refused(name: str, value: str) -> None:
    error = refused(parse_stream_write_options, {**SERVERS, "kafka.compression.type": "gzip", name: value})
    assert str(error).startswith(f"[OPTION_INVALID] Option '{name}' must be ")
    assert f"got '{value}'" in str(error)


def test_a_delivery_timeout_below_the_request_timeout_is_refused() -> None:
    error = refused(parse_stream_write_options, {**SERVERS, "kafka.delivery.timeout.ms": "29999"})
    assert "is 29999, less than the 30000 of 'kafka.request.timeout.ms'" in str(error)


EXACTLY_ONCE = {**SERVERS, "deliveryGuarantee": "exactly_once"}


def test_a_write_is_at_least_once_and_then_what_is_for_the_other_guarantee_is_noted() -> None:
    options = parse_write_options({**SERVERS, "commitTopic": "c", "kafka.transactional.id": "me"}, streaming=True)
    assert options.exactly_once is None
    assert [note.split(" has no effect")[0] for note in options.notes] == [
        "Option 'kafka.transactional.id'",
        "Option 'commitTopic'",
    ]


def test_an_exactly_once_stream_knows_its_query_by_the_checkpoint() -> None:
    options = parse_write_options({**EXACTLY_ONCE, "checkpointlocation": "/c/"}, streaming=True)
    assert options.exactly_once == ExactlyOnceOptions(checkpoint_location="/c/", spool_location="/c/spool")
    assert options.notes == ()
    error = refused(parse_stream_write_options, EXACTLY_ONCE)
    assert error.condition == "OPTION_MISSING"
    assert "Option 'checkpointLocation' of the writer must be set" in str(error)


@pytest.mark.parametrize(
    ("given", "task_timeout_ms"),
    [({}, None), ({"exactlyOnceCommit": "tasks"}, 900_000)],
    ids=["driver", "tasks"],
)
def test_transactions_of_tasks_have_time_unless_the_user_has_set_one(
    given: dict[str, str], task_timeout_ms: int | None
) -> None:
    given = {**EXACTLY_ONCE, "checkpointLocation": "/c", **given}
    for more, expected in (({}, task_timeout_ms), ({"kafka.transaction.timeout.ms": "60000"}, None)):
        found = parse_write_options({**given, **more}, streaming=True).exactly_once
        assert found is not None
        assert (found.task_timeout_ms, found.transaction_timeout_ms) == (expected, 60_000)


def test_an_exactly_once_batch_write_has_no_checkpoint() -> None:
    given = {"spoolLocation": "s3://b/spool", "spoolThresholdBytes": "0", "kafka.transaction.timeout.ms": "9"}
    options = parse_write_options({**EXACTLY_ONCE, **given, "checkpointLocation": "/c"}, streaming=False)
    assert options.exactly_once == ExactlyOnceOptions(
        spool_location="s3://b/spool", spool_threshold_bytes=0, transaction_timeout_ms=9
    )


@pytest.mark.parametrize(("name", "value"), [("kafka.acks", "1"), ("kafka.enable.idempotence", "false")])
def test_exactly_once_needs_acknowledgements_and_idempotence(name: str, value: str) -> None:
    given = {**EXACTLY_ONCE, "checkpointLocation": "/c", "kafka.enable.idempotence": "false", name: value}
    error = refused(parse_stream_write_options, given)
    assert f"Option '{name}' is {value}, but exactly_once needs" in str(error)
