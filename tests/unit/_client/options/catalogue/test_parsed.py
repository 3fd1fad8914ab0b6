"""Names and values of options as they are given: spelling, scope, unknown and doubled ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kit.raw_options import refused
from kit.texts import said
from pyspark_kafka._base.offsets import Earliest
from pyspark_kafka._client.options import (
    BatchReadOptions,
    Scope,
    StreamReadOptions,
    parse_batch_read_options,
    parse_read_options,
    parse_stream_read_options,
    parse_write_options,
)
from pyspark_kafka._client.options.catalogue.parsed import parse_all
from pyspark_kafka.errors import OptionError

SERVERS = {"kafka.bootstrap.servers": "b:9092"}

READ = {**SERVERS, "subscribe": "t"}


def parse_batch_write_options(raw: dict[str, Any]) -> object:
    return parse_write_options(raw, streaming=False)


def parse_stream_write_options(raw: dict[str, Any]) -> object:
    return parse_write_options(raw, streaming=True)


def test_option_is_parsed_without_regard_to_others_and_its_problem_waits() -> None:
    raw = {"maxOffsetsPerTrigger": "10", "minOffsetsPerTrigger": "20", "minPartitions": "0"}
    parsed, problems = parse_all(raw, Scope.STREAM_READ)
    assert parsed.values == {"maxOffsetsPerTrigger": 10, "minOffsetsPerTrigger": 20}
    assert (parsed.given("minPartitions"), parsed.attempted("minPartitions")) == (False, True)
    assert parsed.fields("stream_read")["max_offsets_per_trigger"] == 10
    with pytest.raises(OptionError, match="Option 'minPartitions' must be"):
        problems.raise_all()


def test_lower_case_keys_are_understood_as_spark_hands_them_over() -> None:
    options = parse_stream_read_options(
        {**READ, "startingoffsets": "EARLIEST", "failondataloss": "False", "maxoffsetspertrigger": " 10 "}
    )
    assert (options.starting, options.fail_on_data_loss, options.max_offsets_per_trigger) == (Earliest(), False, 10)


def test_python_values_are_understood() -> None:
    options = parse_stream_read_options({**READ, "includeHeaders": True, "maxOffsetsPerTrigger": 10})
    assert (options.include_headers, options.max_offsets_per_trigger) == (True, 10)


def test_all_problems_are_reported_together_in_canonical_spelling() -> None:
    error = refused(
        parse_stream_read_options,
        {"startingofsets": "latest", "failondataloss": "perhaps", "minpartitions": "0", "kafka.auto.offset.reset": "x"},
    )
    assert error.condition == "OPTIONS_INVALID"
    text = said(error)
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
    assert error.parameters["options"] == (
        "startingofsets, failOnDataLoss, minPartitions, kafka.auto.offset.reset, subscribe, kafka.bootstrap.servers"
    )


def test_a_read_that_may_be_either_is_called_a_read() -> None:
    assert said(refused(parse_read_options, {**READ, "minPartition": "3"})) == (
        "[OPTION_UNKNOWN] Option 'minPartition' is not known in a read. Hint: Did you mean 'minPartitions'?"
    )
    text = str(refused(parse_read_options, {"startingOffsets": "soon"}))
    assert text.startswith("[OPTIONS_INVALID] 3 problems with the options of this read; nothing was done. (1)")
    # An option of one of the two kinds alone is offered as well.
    for typed, meant in (("endingOffset", "endingOffsets"), ("sourceIndx", "sourceIndex")):
        assert said(refused(parse_read_options, {**READ, typed: "0"})).endswith(f"Did you mean '{meant}'?")


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "PushDownPredicate"])
def test_an_option_that_only_a_batch_read_has_tells_that_it_is_one(name: str) -> None:
    value = {"endingOffsets": "latest", "endingTimestamp": "now"}.get(name, "true")
    assert isinstance(parse_read_options({**READ, name: value}), BatchReadOptions)
    # Not among the problems: it is right where it stands.
    text = said(refused(parse_read_options, {**READ, name: value, "failOnDataLoss": "perhaps"}))
    assert text == "[OPTION_INVALID] Option 'failOnDataLoss' must be true or false; got 'perhaps'."


def test_an_option_that_is_valid_in_one_kind_of_read_is_accepted_before_the_kind_is_known() -> None:
    assert isinstance(parse_read_options({**READ, "startingOffsets": "latest"}), StreamReadOptions)
    assert isinstance(parse_read_options({**READ, "maxOffsetsPerTrigger": "1", "sourceIndex": "1"}), StreamReadOptions)


@pytest.mark.parametrize("name", ["MaxOfsetsPerTrigger", " MaxOfsetsPerTrigger "])
def test_an_unknown_option_is_shown_as_it_was_written(name: str) -> None:
    assert "Option 'MaxOfsetsPerTrigger' is not known" in str(refused(parse_stream_read_options, {**READ, name: "1"}))


@pytest.mark.parametrize("name", ["kafka.partitioner.ignore.keys"])
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


def test_unknown_client_properties_are_refused() -> None:
    error = refused(parse_batch_read_options, {**READ, "kafka.fetch.max.byte": "1"})
    assert error.condition == "OPTION_UNKNOWN"
    assert said(error).endswith("Hint: Did you mean 'kafka.fetch.max.bytes'?")


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


def test_keys_that_spark_adds_are_taken_for_its_own() -> None:
    # As PySpark 4.3 hands them over: load(path), load([paths]), CREATE TABLE … USING, writeStream.
    host = {"path": "/p", "paths": '["/p"]', "option.subscribe": "t", "owner": "root", "provider": "pyspark_kafka"}
    assert parse_batch_read_options({**READ, **host}) == parse_batch_read_options(READ)
    host = {"checkpointlocation": "/c", "queryname": "q", "path": "/p", "outputmode": "append"}
    own = replace(parse_write_options(SERVERS, streaming=True), checkpoint_location="/c")
    assert parse_write_options({**SERVERS, **host}, streaming=True) == own


def test_one_option_in_two_spellings_with_two_values_is_refused() -> None:
    error = refused(parse_batch_read_options, {**READ, "Subscribe": "u"})
    assert said(error) == "[OPTION_CONFLICT] Option 'subscribe' is given twice with different values."
    assert parse_batch_read_options({**READ, "Subscribe": "t"}) == parse_batch_read_options(READ)


def test_an_option_without_a_value_is_refused() -> None:
    assert said(refused(parse_batch_read_options, {**READ, "failOnDataLoss": None})) == (
        "[OPTION_INVALID] Option 'failOnDataLoss' has no value."
    )


@pytest.mark.parametrize("name", ["kafka.client.id", "kafka.sasl.jaas.config", "valueSchema"])
def test_a_value_that_no_encoding_can_send_is_refused_and_not_repeated(name: str) -> None:
    error = refused(parse_read_options, {**READ, name: "hunter2\udcdf"})
    assert f"Option '{name}' is not text in UTF-8." in str(error)
    assert "hunter2" not in repr(error)


@pytest.mark.parametrize(("text", "expected"), [("1", "1"), (" 007 ", "7"), ("orders_2", "orders_2")])
def test_source_is_a_number_or_a_name(text: str, expected: str) -> None:
    options = parse_stream_read_options({**READ, "checkpointLocation": "/c", "sourceIndex": text})
    assert options.source_index == expected


@pytest.mark.parametrize("text", ["../0", "a/b", "", "ü", "a-b", "²"])
def test_source_is_no_path(text: str) -> None:
    error = refused(parse_stream_read_options, {**READ, "checkpointLocation": "/c", "sourceIndex": text})
    assert "Option 'sourceIndex'" in str(error)
