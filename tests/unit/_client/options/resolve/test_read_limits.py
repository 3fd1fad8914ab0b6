"""Options that bound tasks, micro-batches and outages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kit.texts import said
from pyspark_kafka._client.options import parse_batch_read_options, parse_stream_read_options, parse_write_options
from pyspark_kafka.errors import OptionError

READ = {"kafka.bootstrap.servers": "b:9092", "subscribe": "t"}

NOW = 1_800_000_000_000


def refused(parse: Callable[..., object], **raw: Any) -> OptionError:
    with pytest.raises(OptionError) as caught:
        parse({**READ, **raw}, now_ms=NOW)
    return caught.value


@pytest.mark.parametrize(("strategy", "expected"), [(None, False), ("Latest", True), ("error", False)])
def test_the_strategy_for_a_partition_without_a_record_of_the_time(strategy: str | None, expected: bool) -> None:
    given = {"startingTimestamp": "1"} | ({"startingOffsetsByTimestampStrategy": strategy} if strategy else {})
    for parse in (parse_batch_read_options, parse_stream_read_options):
        assert parse({**READ, **given}).start_at_latest_without_match is expected


def test_another_strategy_is_refused_even_without_times() -> None:
    error = refused(parse_stream_read_options, startingOffsetsByTimestampStrategy="earliest")
    assert said(error) == (
        "[OPTION_INVALID] Option 'startingOffsetsByTimestampStrategy' must be one of error, latest; got 'earliest'."
    )


def test_splitting_options_reach_their_fields() -> None:
    raw = {**READ, "minpartitions": "7", "maxrecordsperpartition": str(2**63 - 1)}
    for parse in (parse_batch_read_options, parse_stream_read_options):
        options = parse(raw)
        assert (options.min_partitions, options.max_records_per_partition) == (7, 2**63 - 1)
        assert (parse(READ).min_partitions, parse(READ).max_records_per_partition) == (None, None)


def test_partitions_that_share_tasks_and_more_tasks_than_partitions_do_not_go_together() -> None:
    for parse in (parse_batch_read_options, parse_stream_read_options):
        assert parse({**READ, "maxpartitionspertask": "50"}).max_partitions_per_task == 50
        assert parse({**READ, "maxPartitionsPerTask": "1", "minPartitions": "7"}).max_partitions_per_task == 1
        assert parse(READ).max_partitions_per_task == 1
        assert said(refused(parse, maxPartitionsPerTask="2", minPartitions="7")) == (
            "[OPTION_CONFLICT] Option 'minPartitions' is 7 and asks for more tasks than topic-partitions, "
            "'maxPartitionsPerTask' is 2 and asks for fewer. Hint: Set one of the two."
        )


@pytest.mark.parametrize("name", ["minPartitions", "maxRecordsPerPartition", "maxPartitionsPerTask"])
def test_a_split_into_nothing_is_refused(name: str) -> None:
    for value in ("0", "-1", "1.0", str(2**63)):
        assert f"Option '{name}' must be a whole number of " in str(refused(parse_batch_read_options, **{name: value}))


def test_the_least_offsets_of_a_batch_and_its_delay_reach_their_fields() -> None:
    options = parse_stream_read_options({**READ, "minOffsetsPerTrigger": "5", "maxTriggerDelay": "90s"})
    assert (options.min_offsets_per_trigger, options.max_trigger_delay_ms, options.notes) == (5, 90_000, ())
    default = parse_stream_read_options(READ)
    assert (default.min_offsets_per_trigger, default.max_trigger_delay_ms) == (None, 900_000)


def test_a_least_number_above_the_greatest_is_refused() -> None:
    assert said(refused(parse_stream_read_options, minOffsetsPerTrigger="20", maxOffsetsPerTrigger="15")) == (
        "[OPTION_CONFLICT] Option 'minOffsetsPerTrigger' is 20, more than the 15 of 'maxOffsetsPerTrigger'. Hint: "
        "Lower the first or raise the second."
    )
    equal = parse_stream_read_options({**READ, "minOffsetsPerTrigger": "15", "maxOffsetsPerTrigger": "15"})
    assert equal.min_offsets_per_trigger == equal.max_offsets_per_trigger == 15


def test_a_delay_alone_is_noted() -> None:
    notes = parse_stream_read_options({**READ, "maxTriggerDelay": "1m"}).notes
    assert notes == ("Option 'maxTriggerDelay' has no effect: 'minOffsetsPerTrigger' is not given.",)


@pytest.mark.parametrize("name", ["maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "outageTimeout"])
def test_a_batch_read_notes_options_of_triggers(name: str) -> None:
    notes = parse_batch_read_options({**READ, name: "5"}).notes
    assert notes == (f"Option '{name}' has no effect: it is not an option of a batch read.",)


def test_outages_are_waited_out_in_streams_only() -> None:
    stream = parse_stream_read_options({**READ, "outageTimeout": "30m"})
    assert (stream.outage_timeout_ms, stream.fetch.outage_timeout_ms) == (1_800_000, 1_800_000)
    assert parse_stream_read_options(READ).outage_timeout_ms == 600_000
    assert parse_stream_read_options({**READ, "outageTimeout": "0"}).outage_timeout_ms == 0
    batch = parse_batch_read_options(READ)
    assert (batch.outage_timeout_ms, batch.fetch.outage_timeout_ms) == (0, 0)
    assert "must be a time span" in str(refused(parse_stream_read_options, outageTimeout="a while"))


@pytest.mark.parametrize(
    ("options", "streaming", "expected"),
    [
        ({}, True, (600_000, 120_000, 600_000)),
        ({"outageTimeout": "1m"}, True, (60_000, 120_000, 120_000)),
        ({"outageTimeout": "0"}, True, (0, 120_000, 120_000)),
        ({"kafka.delivery.timeout.ms": "50000"}, True, (600_000, 50_000, 50_000)),
        ({}, False, (0, 120_000, 120_000)),
        ({"outageTimeout": "1h"}, False, (0, 120_000, 120_000)),
    ],
)
def test_a_stream_that_has_run_delivers_for_as_long_as_an_outage_may_last(
    options: dict[str, str], streaming: bool, expected: tuple[int, int, int]
) -> None:
    written = parse_write_options({"kafka.bootstrap.servers": "a:1", **options}, streaming=streaming)
    found = (written.outage_timeout_ms, written.producer.delivery_timeout_ms, written.patient_delivery_timeout_ms)
    assert found == expected
