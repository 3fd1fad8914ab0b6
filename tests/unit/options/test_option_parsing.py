"""What options mean together, and what is said when they do not fit."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

from pyspark_kafka.errors import OptionError
from pyspark_kafka.model import IsolationLevel, TopicPartition
from pyspark_kafka.offsets import Earliest, Latest, SpecificOffsets
from pyspark_kafka.options import (
    BatchReadOptions,
    ConnectionOptions,
    ExactlyOnceOptions,
    FetchOptions,
    ProducerOptions,
    StreamReadOptions,
    Subscription,
    parse_batch_read_options,
    parse_read_options,
    parse_stream_read_options,
    parse_write_options,
)
from pyspark_kafka.options.parse.offsets_json import parse_specific_offsets

if TYPE_CHECKING:
    from collections.abc import Callable

SERVERS = {"kafka.bootstrap.servers": "b:9092"}
READ = {**SERVERS, "subscribe": "t"}


def parse_batch_write_options(raw: dict[str, Any]) -> object:
    return parse_write_options(raw, streaming=False)


def parse_stream_write_options(raw: dict[str, Any]) -> object:
    return parse_write_options(raw, streaming=True)


def refused(parse: Callable[[dict[str, Any]], object], raw: dict[str, Any]) -> OptionError:
    with pytest.raises(OptionError) as caught:
        parse(raw)
    return caught.value


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


def test_a_write_has_its_defaults() -> None:
    options = parse_write_options(SERVERS, streaming=True)
    assert options.topic is None
    assert options.producer == ProducerOptions()
    assert (options.producer.acks, options.producer.idempotence) == (-1, True)


def test_lower_case_keys_are_understood_as_spark_hands_them_over() -> None:
    options = parse_stream_read_options(
        {**READ, "startingoffsets": "EARLIEST", "failondataloss": "False", "maxoffsetspertrigger": " 10 "}
    )
    assert (options.starting, options.fail_on_data_loss, options.max_offsets_per_trigger) == (Earliest(), False, 10)


def test_python_values_are_understood() -> None:
    options = parse_stream_read_options({**READ, "includeHeaders": True, "maxOffsetsPerTrigger": 10})
    assert (options.include_headers, options.max_offsets_per_trigger) == (True, 10)


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
def test_a_buffer_that_is_too_small_for_batches_is_taken_and_said(given: str) -> None:
    options = parse_write_options({**SERVERS, "topic": "t", "kafka.buffer.memory": given}, streaming=False)
    assert options.max_unacknowledged_bytes == 1 << 20
    assert options.notes == (f"Option 'kafka.buffer.memory' is {given} bytes: 1048576 are used, which batches need.",)


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
    assert str(refused(parse_batch_read_options, {"subscribe": "t"})) == (
        "[OPTION_MISSING] Option 'kafka.bootstrap.servers' must be set: it says where the Kafka brokers are. Hint: "
        'Set it: .option("kafka.bootstrap.servers", "host1:9092,host2:9092").'
    )


def test_missing_strategy_names_the_three() -> None:
    assert str(refused(parse_stream_read_options, SERVERS)) == (
        "[OPTION_MISSING] One of the options 'subscribe', 'subscribePattern', 'assign' must be set: it says what to "
        'read. Hint: Set one: .option("subscribe", "my-topic").'
    )


def test_two_strategies_are_refused_once() -> None:
    error = refused(parse_stream_read_options, {**READ, "assign": '{"t":[0]}', "subscribepattern": "t"})
    assert str(error) == (
        "[OPTION_CONFLICT] Options 'subscribe', 'subscribePattern', 'assign' are given; only one of 'subscribe', "
        "'subscribePattern', 'assign' can be. Hint: Remove all but one."
    )


def test_all_problems_are_reported_together_in_canonical_spelling() -> None:
    error = refused(
        parse_stream_read_options,
        {"startingofsets": "latest", "failondataloss": "perhaps", "minpartitions": "0", "kafka.auto.offset.reset": "x"},
    )
    assert error.condition == "OPTIONS_INVALID"
    text = str(error)
    assert text.startswith(
        "[OPTIONS_INVALID] 6 problems with the options of this streaming read; nothing was done. (1)"
    )
    for part in (
        "[OPTION_UNKNOWN] Option 'startingofsets' is not known in a streaming read. Hint: Did you mean 'sta",
        "[OPTION_INVALID] Option 'failOnDataLoss' must be true or false; got 'perhaps'.",
        "[OPTION_INVALID] Option 'minPartitions' must be a whole number of tasks from 1 to 2147483647; got '0'.",
        "[OPTION_REFUSED] Option 'kafka.auto.offset.reset' cannot be set.",
        "[OPTION_MISSING] One of the options 'subscribe'",
        "[OPTION_MISSING] Option 'kafka.bootstrap.servers'",
    ):
        assert part in text
    assert text.endswith(" Hint: Correct all of them.")
    assert error.facts["options"] == (
        "startingofsets, failOnDataLoss, minPartitions, kafka.auto.offset.reset, subscribe, kafka.bootstrap.servers"
    )


def test_a_read_that_may_be_either_is_called_a_read() -> None:
    assert str(refused(parse_read_options, {**READ, "minPartition": "3"})) == (
        "[OPTION_UNKNOWN] Option 'minPartition' is not known in a read. Hint: Did you mean 'minPartitions'?"
    )
    text = str(refused(parse_read_options, {"startingOffsets": "soon"}))
    assert text.startswith("[OPTIONS_INVALID] 3 problems with the options of this read; nothing was done. (1)")
    # An option of one of the two kinds alone is offered as well.
    for typed, meant in (("endingOffset", "endingOffsets"), ("sourceIndx", "sourceIndex")):
        assert str(refused(parse_read_options, {**READ, typed: "0"})).endswith(f"Did you mean '{meant}'?")


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "PushDownPredicate"])
def test_an_option_that_only_a_batch_read_has_tells_that_it_is_one(name: str) -> None:
    value = {"endingOffsets": "latest", "endingTimestamp": "now"}.get(name, "true")
    assert isinstance(parse_read_options({**READ, name: value}), BatchReadOptions)
    # Not among the problems: it is right where it stands.
    text = str(refused(parse_read_options, {**READ, name: value, "failOnDataLoss": "perhaps"}))
    assert text == "[OPTION_INVALID] Option 'failOnDataLoss' must be true or false; got 'perhaps'."


def test_an_option_that_is_valid_in_one_kind_of_read_is_accepted_before_the_kind_is_known() -> None:
    assert isinstance(parse_read_options({**READ, "startingOffsets": "latest"}), StreamReadOptions)
    assert isinstance(parse_read_options({**READ, "maxOffsetsPerTrigger": "1", "sourceIndex": "1"}), StreamReadOptions)


@pytest.mark.parametrize("name", ["MaxOfsetsPerTrigger", " MaxOfsetsPerTrigger "])
def test_an_unknown_option_is_shown_as_it_was_written(name: str) -> None:
    assert "Option 'MaxOfsetsPerTrigger' is not known" in str(refused(parse_stream_read_options, {**READ, name: "1"}))


@pytest.mark.parametrize("given", [{}, {"minOffsetsPerTrigger": "5"}])
def test_a_trigger_delay_is_checked_whether_or_not_it_has_an_effect(given: dict[str, Any]) -> None:
    options = parse_stream_read_options({**READ, **given, "maxTriggerDelay": "5 minutes"})
    assert options.max_trigger_delay_ms == 300_000
    error = refused(parse_stream_read_options, {**READ, **given, "maxTriggerDelay": "5 moons"})
    assert str(error) == (
        "[OPTION_INVALID] Option 'maxTriggerDelay' must be a time span such as '15m', '90s' or '500ms'; got '5 moons'."
    )


@pytest.mark.parametrize("name", ["kafka.partitioner.ignore.keys", "kafka.ssl.protocol"])
def test_options_of_a_later_version_are_refused_not_ignored(name: str) -> None:
    error = refused(parse_stream_write_options, {**SERVERS, name.upper(): "1"})
    assert error.condition == "OPTION_NOT_SUPPORTED"
    assert f"Option '{name}' is not supported yet" in str(error)


@pytest.mark.parametrize(
    ("parse", "name", "scope"),
    [
        (parse_stream_read_options, "endingOffsets", "streaming read"),
        (parse_stream_read_options, "endingOffsetsByTimestamp", "streaming read"),
        (parse_stream_read_options, "endingTimestamp", "streaming read"),
        (parse_batch_write_options, "startingTimestamp", "batch write"),
        (parse_stream_write_options, "minPartitions", "streaming write"),
        (parse_stream_read_options, "topic", "streaming read"),
        (parse_batch_write_options, "subscribe", "batch write"),
        (parse_stream_write_options, "startingOffsets", "streaming write"),
        (parse_stream_write_options, "maxOffsetsPerTrigger", "streaming write"),
    ],
)
def test_an_option_in_the_wrong_place_is_refused(
    parse: Callable[[dict[str, Any]], object], name: str, scope: str
) -> None:
    base = SERVERS if "write" in scope else READ
    error = refused(parse, {**base, name: "latest"})
    assert error.condition == "OPTION_NOT_APPLICABLE"
    assert f"Option '{name}' has no meaning in a {scope}; it is an option of " in str(error)


@pytest.mark.parametrize("value", ["0", "-1", "1.0", "a", "", "9223372036854775808", "1_000", "٣"])
def test_a_limit_with_which_a_stream_would_stand_still_is_refused(value: str) -> None:
    error = refused(parse_stream_read_options, {**READ, "maxOffsetsPerTrigger": value})
    assert str(error) == (
        "[OPTION_INVALID] Option 'maxOffsetsPerTrigger' must be a whole number of offsets from 1 to "
        f"9223372036854775807; got '{value}'."
    )


def test_a_batch_read_takes_no_limit_and_says_so() -> None:
    notes = parse_batch_read_options({**READ, "maxOffsetsPerTrigger": "5"}).notes
    assert notes == ("Option 'maxOffsetsPerTrigger' has no effect: it is not an option of a batch read.",)


@pytest.mark.parametrize("name", ["kafka.request.timeout.ms", "kafka.fetch.max.bytes", "kafka.receive.buffer.bytes"])
def test_a_number_beyond_32_bits_is_refused(name: str) -> None:
    assert "2147483647; got '2147483648'" in str(refused(parse_batch_read_options, {**READ, name: "2147483648"}))


def test_unknown_client_properties_are_refused() -> None:
    error = refused(parse_batch_read_options, {**READ, "kafka.fetch.max.byte": "1"})
    assert error.condition == "OPTION_UNKNOWN"
    assert str(error).endswith("Hint: Did you mean 'kafka.fetch.max.bytes'?")


@pytest.mark.parametrize(
    "name",
    [
        "auto.offset.reset",
        "key.deserializer",
        "value.deserializer",
        "enable.auto.commit",
        "interceptor.classes",
        "key.serializer",
        "value.serializer",
        "transaction.two.phase.commit.enable",
        "partitioner.class",
        "sasl.username",
        "ssl.ca.location",
    ],
)
@pytest.mark.parametrize("parse", [parse_stream_read_options, parse_stream_write_options])
def test_properties_that_the_connector_owns_are_refused_with_what_to_do(
    parse: Callable[[dict[str, Any]], object], name: str
) -> None:
    base = READ if parse is parse_stream_read_options else SERVERS
    error = refused(parse, {**base, f"kafka.{name}": "x"})
    assert error.condition == "OPTION_REFUSED"
    assert f"Option 'kafka.{name}' cannot be set. Hint: " in str(error)


def test_properties_without_meaning_are_noted() -> None:
    options = parse_stream_read_options({**READ, "kafka.max.poll.records": "1", "kafka.acks": "all"})
    assert options.notes == (
        "Option 'kafka.max.poll.records' has no effect: records are read as whole record batches.",
        "Option 'kafka.acks' has no effect: it is not an option of a streaming read.",
    )


def test_a_group_id_goes_before_its_prefix_and_that_is_noted() -> None:
    options = parse_stream_read_options({**READ, "kafka.group.id": "g", "groupIdPrefix": "p"})
    assert options.group_id == "g"
    assert options.notes == ("Option 'groupIdPrefix' has no effect: 'kafka.group.id' is given.",)


def test_keys_that_spark_adds_are_taken_for_its_own() -> None:
    # As PySpark 4.3 hands them over: load(path), load([paths]), CREATE TABLE … USING, writeStream.
    host = {"path": "/p", "paths": '["/p"]', "option.subscribe": "t", "owner": "root", "provider": "pyspark_kafka"}
    assert parse_batch_read_options({**READ, **host}) == parse_batch_read_options(READ)
    host = {"checkpointlocation": "/c", "queryname": "q", "path": "/p", "outputmode": "append"}
    assert parse_write_options({**SERVERS, **host}, streaming=True) == parse_write_options(SERVERS, streaming=True)


def test_one_option_in_two_spellings_with_two_values_is_refused() -> None:
    error = refused(parse_batch_read_options, {**READ, "Subscribe": "u"})
    assert str(error) == "[OPTION_CONFLICT] Option 'subscribe' is given twice with different values."
    assert parse_batch_read_options({**READ, "Subscribe": "t"}) == parse_batch_read_options(READ)


def test_an_option_without_a_value_is_refused() -> None:
    assert str(refused(parse_batch_read_options, {**READ, "failOnDataLoss": None})) == (
        "[OPTION_INVALID] Option 'failOnDataLoss' has no value."
    )


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
        ({"startingOffsets": '{"u":{"0":2}}'}, "OPTION_CONFLICT", "names u, not read here and says nothing about t;"),
    ],
)
def test_limits_of_a_batch_read_that_cannot_be_meant_are_refused(
    raw: dict[str, str], condition: str, text: str
) -> None:
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


@pytest.mark.parametrize("acks", ["0", "1"])
def test_fewer_acks_need_idempotence_to_be_off(acks: str) -> None:
    error = refused(parse_stream_write_options, {**SERVERS, "kafka.acks": acks})
    assert str(error) == (
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


def test_a_fetch_larger_than_a_task_may_hold_is_refused() -> None:
    error = refused(parse_batch_read_options, {**READ, "maxBufferedBytesPerTask": "1048576"})
    assert "'kafka.fetch.max.bytes' is 8388608, more than the 1048576 bytes" in str(error)


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
