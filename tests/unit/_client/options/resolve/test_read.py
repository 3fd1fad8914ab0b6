"""Options of reads: defaults, subscriptions, offsets."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from kit.raw_options import refused
from kit.texts import said
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import Earliest, Latest, SpecificOffsets
from pyspark_kafka._client.options import (
    ConnectionOptions,
    FetchOptions,
    Subscription,
    parse_batch_read_options,
    parse_stream_read_options,
    parse_write_options,
)
from pyspark_kafka._client.options.parse.offsets_json import parse_specific_offsets

SERVERS = {"kafka.bootstrap.servers": "b:9092"}

READ = {**SERVERS, "subscribe": "t"}


def parse_stream_write_options(raw: dict[str, Any]) -> object:
    return parse_write_options(raw, streaming=True)


def test_a_batch_read_has_its_defaults() -> None:
    options = parse_batch_read_options(READ)
    assert options.connection == ConnectionOptions((("b", 9092),))
    assert options.subscription == Subscription("subscribe", topics=("t",))
    assert (options.starting, options.ending) == (Earliest(), Latest())
    assert options.fetch == FetchOptions()
    assert (options.fail_on_data_loss, options.include_headers) == (True, False)
    assert (options.fetch_offset_attempts, options.fetch_offset_retry_interval_ms) == (3, 1000)
    assert (options.group_id_prefix, options.group_id, options.notes) == ("spark-kafka-relation", None, ())


def test_a_stream_read_has_its_defaults() -> None:
    options = parse_stream_read_options(READ)
    assert options.starting == Latest()
    assert options.max_offsets_per_trigger is None
    assert options.group_id_prefix == "spark-kafka-source"


@pytest.mark.parametrize("parse", [parse_batch_read_options, parse_stream_read_options])
def test_resolved_options_can_be_pickled_and_hashed(parse: Callable[[dict[str, Any]], Any]) -> None:
    options = parse({**READ, "startingOffsets": '{"t":{"0":1}}'} | ({}))
    assert pickle.loads(pickle.dumps(options)) == options  # noqa: S301 - our own bytes
    assert hash(options.connection) == hash(parse(READ).connection)


@pytest.mark.parametrize(
    ("raw", "subscription", "described"),
    [
        ({"subscribe": " b, a ,,b"}, Subscription("subscribe", topics=("a", "b")), "Subscribe[a, b]"),
        (
            {"assign": '{"t":[2,0]}'},
            Subscription("assign", topic_partitions=(TopicPartition("t", 0), TopicPartition("t", 2))),
            "Assign[t-0, t-2]",
        ),
        ({"subscribePattern": " or.*s "}, Subscription("subscribePattern", pattern="or.*s"), "SubscribePattern[or.*s]"),
    ],
)
def test_the_three_strategies(raw: dict[str, str], subscription: Subscription, described: str) -> None:
    found = parse_stream_read_options({**SERVERS, **raw}).subscription
    assert found == subscription
    assert found.describe() == described


def test_missing_strategy_names_the_three() -> None:
    assert said(refused(parse_stream_read_options, SERVERS)) == (
        "[OPTION_MISSING] One of the options 'subscribe', 'subscribePattern', 'assign' must be set: it says what to "
        'read. Hint: Set one: .option("subscribe", "my-topic").'
    )


def test_two_strategies_are_refused_once() -> None:
    error = refused(parse_stream_read_options, {**READ, "assign": '{"t":[0]}', "subscribepattern": "t"})
    assert said(error) == (
        "[OPTION_CONFLICT] Options 'subscribe', 'subscribePattern', 'assign' are given; only one of 'subscribe', "
        "'subscribePattern', 'assign' can be. Hint: Remove all but one."
    )


@pytest.mark.parametrize("given", [{}, {"minOffsetsPerTrigger": "5"}])
def test_a_trigger_delay_is_checked_whether_or_not_it_has_an_effect(given: dict[str, Any]) -> None:
    options = parse_stream_read_options({**READ, **given, "maxTriggerDelay": "5 minutes"})
    assert options.max_trigger_delay_ms == 300_000
    error = refused(parse_stream_read_options, {**READ, **given, "maxTriggerDelay": "5 moons"})
    assert said(error) == (
        "[OPTION_INVALID] Option 'maxTriggerDelay' must be a time span such as '15m', '90s' or '500ms'; got '5 moons'."
    )


@pytest.mark.parametrize("value", ["0", "-1", "1.0", "a", "", "9223372036854775808", "1_000", "٣"])
def test_a_limit_with_which_a_stream_would_stand_still_is_refused(value: str) -> None:
    error = refused(parse_stream_read_options, {**READ, "maxOffsetsPerTrigger": value})
    assert said(error) == (
        "[OPTION_INVALID] Option 'maxOffsetsPerTrigger' must be a whole number of offsets from 1 to "
        f"9223372036854775807; got '{value}'."
    )


def test_a_batch_read_takes_no_limit_and_says_so() -> None:
    notes = parse_batch_read_options({**READ, "maxOffsetsPerTrigger": "5"}).notes
    assert notes == ("Option 'maxOffsetsPerTrigger' has no effect: it is not an option of a batch read.",)


@pytest.mark.parametrize("name", ["kafka.request.timeout.ms", "kafka.fetch.max.bytes", "kafka.receive.buffer.bytes"])
def test_a_number_beyond_32_bits_is_refused(name: str) -> None:
    assert "2147483647; got '2147483648'" in str(refused(parse_batch_read_options, {**READ, name: "2147483648"}))


def test_group_id_takes_precedence_over_its_prefix_and_that_is_noted() -> None:
    options = parse_stream_read_options({**READ, "kafka.group.id": "g", "groupIdPrefix": "p"})
    assert options.group_id == "g"
    assert options.notes == ("Option 'groupIdPrefix' has no effect: 'kafka.group.id' is given.",)


@pytest.mark.parametrize("name", ["a/b", "..", "a" * 250, "ä", "a b"])
def test_a_name_that_no_topic_can_have_is_refused(name: str) -> None:
    assert "must be a topic name" in str(refused(parse_batch_read_options, {**SERVERS, "subscribe": name}))
    assert "must be a topic name" in str(refused(parse_stream_write_options, {**SERVERS, "topic": name}))


@pytest.mark.parametrize(
    ("name", "value"), [("subscribe", " , "), ("subscribePattern", " "), ("subscribePattern", "(")]
)
def test_a_strategy_without_anything_to_read_is_refused(name: str, value: str) -> None:
    error = refused(parse_stream_read_options, {**SERVERS, name: value})
    assert error.condition == "OPTION_INVALID"
    assert str(error).startswith(f"[OPTION_INVALID] Option '{name}' must ")


def test_offsets_by_partition_and_topic() -> None:
    raw = {**SERVERS, "subscribe": "a,b", "startingOffsets": '{"a":{"0":5,"1":-2},"b":"earliest"}'}
    assert parse_batch_read_options(raw).starting == SpecificOffsets(
        {TopicPartition("a", 0): 5, TopicPartition("a", 1): Earliest()}, {"b": Earliest()}
    )


@pytest.mark.parametrize(
    ("raw", "condition", "text"),
    [
        ({"startingOffsets": "latest"}, "OPTION_INVALID", "Option 'startingOffsets' cannot be latest in a batch read."),
        ({"endingOffsets": "Earliest"}, "OPTION_INVALID", "Option 'endingOffsets' cannot be earliest in a batch read."),
        ({"startingOffsets": '{"t":{"0":1,"1":-1}}'}, "OPTION_INVALID", "cannot be latest for t-1 in a batch read."),
        ({"endingOffsets": '{"t":{"0":1,"1":-2}}'}, "OPTION_INVALID", "cannot be earliest for t-1 in a batch read."),
        ({"startingOffsets": '{"t":"latest"}'}, "OPTION_INVALID", "cannot be latest for t in a batch read."),
        ({"endingOffsets": '{"t":"earliest"}'}, "OPTION_INVALID", "cannot be earliest for t in a batch read."),
        ({"startingOffsets": '{"t":{"0":-3}}'}, "OPTION_INVALID", "t-0 has '-3'; a partition takes an offset from 0"),
        ({"startingOffsets": "newest"}, "OPTION_INVALID", "must be earliest, latest or JSON of offsets by partition"),
        (
            {"startingOffsets": '{"t":{"0":1}}', "endingOffsets": '{"t":{"1":1}}'},
            "MISMATCHED_TOPIC_PARTITIONS_BETWEEN_START_OFFSET_AND_END_OFFSET",
            "'startingOffsets' names t-0, 'endingOffsets' names t-1.",
        ),
        (
            {"startingOffsets": '{"t":{"0":2}}', "endingOffsets": '{"t":{"0":1}}'},
            "UNRESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET",
            "Option 'startingOffsets' is 2 for t-0, greater than its 'endingOffsets', 1.",
        ),
        ({"startingOffsets": '{"u":{"0":2}}'}, "OPTION_CONFLICT", "names u, not read here and leaves out t;"),
    ],
)
def test_edges_of_a_batch_read_that_cannot_be_meant_are_refused(raw: dict[str, str], condition: str, text: str) -> None:
    error = refused(parse_batch_read_options, {**READ, **raw})
    assert error.condition == condition
    assert text in str(error)


def test_an_empty_range_and_open_ends_are_no_mistake() -> None:
    raw = {"startingOffsets": '{"t":{"0":2,"1":-2}}', "endingOffsets": '{"t":{"0":2,"1":-1}}'}
    options = parse_batch_read_options({**READ, **raw})
    assert isinstance(options.ending, SpecificOffsets)
    assert options.ending.partitions[TopicPartition("t", 1)] == Latest()


def test_a_stream_may_start_at_latest_by_partition() -> None:
    options = parse_stream_read_options({**READ, "startingOffsets": '{"t":{"0":-1}}'})
    assert options.starting == SpecificOffsets({TopicPartition("t", 0): Latest()})


def test_offsets_must_not_name_what_is_not_assigned() -> None:
    raw = {**SERVERS, "assign": '{"t":[0,1]}', "startingOffsets": '{"t":{"0":1,"2":1},"u":"earliest"}'}
    assert "'startingOffsets' names t-2, u, not read here; " in str(refused(parse_stream_read_options, raw))


@pytest.mark.parametrize("offsets", ['{"t":{"0":1}}', '{"t":"earliest"}'])
def test_offsets_may_leave_out_assigned_partitions_that_need_not_exist(offsets: str) -> None:
    # With offsets for partitions, those that do not exist must be left out: only brokers know which.
    raw = {**SERVERS, "assign": '{"t":[0,1]}', "startingOffsets": offsets}
    assert parse_batch_read_options(raw).starting == parse_specific_offsets(offsets)


def test_a_pattern_leaves_the_check_of_names_to_planning() -> None:
    raw = {**SERVERS, "subscribePattern": "t.*", "startingOffsets": '{"t1":{"0":1}}'}
    assert isinstance(parse_stream_read_options(raw).starting, SpecificOffsets)


def test_a_fetch_larger_than_a_task_may_hold_is_refused() -> None:
    given = {**READ, "maxBufferedBytesPerTask": "1048576"}
    error = refused(parse_batch_read_options, {**given, "kafka.fetch.max.bytes": "8388608"})
    assert "'kafka.fetch.max.bytes' is 8388608, more than the 1048576 bytes" in str(error)
    # A default that the user has not set follows.
    assert parse_batch_read_options(given).fetch.max_bytes_per_fetch == 1_048_576
