"""Where a read starts and ends: which option takes precedence, and which edges are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kit.texts import said
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import (
    AtTimestamp,
    Earliest,
    Latest,
    RangeEdge,
    SpecificOffsets,
    SpecificTimestamps,
    timestamp_text,
)
from pyspark_kafka._client.options import parse_batch_read_options, parse_stream_read_options
from pyspark_kafka.errors import OptionError

READ = {"kafka.bootstrap.servers": "b:9092", "subscribe": "t"}

A, B = TopicPartition("t", 0), TopicPartition("t", 1)

NOW = 1_800_000_000_000

GIVEN: dict[str, tuple[str, RangeEdge]] = {
    "Timestamp": ("7", AtTimestamp(7)),
    "OffsetsByTimestamp": ('{"t":{"0":5,"1":"1970-01-01T00:00:00.006Z"}}', SpecificTimestamps({A: 5, B: 6})),
    "Offsets": ('{"t":{"0":1,"1":2}}', SpecificOffsets({A: 1, B: 2})),
}

ORDER = list(GIVEN)


def refused(parse: Callable[..., object], **raw: Any) -> OptionError:
    with pytest.raises(OptionError) as caught:
        parse({**READ, **raw}, now_ms=NOW)
    return caught.value


@pytest.mark.parametrize(
    "given", [ORDER[first:] for first in range(3)] + [[name] for name in ORDER] + [["Timestamp", "Offsets"]]
)
def test_time_for_all_takes_precedence_over_times_by_partition_and_these_over_offsets(given: list[str]) -> None:
    raw = {f"{side}{name}": GIVEN[name][0] for name in given for side in ("starting", "ending")}
    batch = parse_batch_read_options({**READ, **raw})
    assert batch.starting == batch.ending == GIVEN[given[0]][1]
    ignored = [
        f"Option '{side}{name}' has no effect: '{side}{given[0]}' is given, which takes precedence."
        for side in ("starting", "ending")
        for name in given[1:]
    ]
    assert list(batch.notes) == ignored
    stream = parse_stream_read_options({**READ, **{name: raw[name] for name in raw if name.startswith("starting")}})
    assert stream.starting == GIVEN[given[0]][1]


def test_the_start_does_not_decide_about_the_end() -> None:
    options = parse_batch_read_options({**READ, "startingTimestamp": "7", "endingOffsets": '{"t":{"0":9}}'})
    assert (options.starting, options.ending) == (AtTimestamp(7), SpecificOffsets({A: 9}))
    # A start that takes precedence over latest makes it a good one.
    assert parse_batch_read_options({**READ, "startingTimestamp": "7", "startingOffsets": "latest"}).ending == Latest()


def test_relative_times_are_all_counted_from_one_moment() -> None:
    raw = {
        "startingOffsetsByTimestamp": '{"t":{"0":"2 hours ago","1":"90 minutes ago"}}',
        "endingTimestamp": "1 hour ago",
    }
    options = parse_batch_read_options({**READ, **raw}, now_ms=NOW)
    assert options.starting == SpecificTimestamps({A: NOW - 7_200_000, B: NOW - 5_400_000})
    assert options.ending == AtTimestamp(NOW - 3_600_000)


def test_the_clock_is_read_where_no_time_is_given() -> None:
    first, second = (parse_stream_read_options({**READ, "startingTimestamp": "now"}).starting for _ in range(2))
    assert isinstance(first, AtTimestamp)
    assert isinstance(second, AtTimestamp)
    # After this line was written, and in order.
    assert 1_700_000_000_000 < first.timestamp_ms <= second.timestamp_ms


@pytest.mark.parametrize("name", ["endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    assert said(refused(parse_stream_read_options, **{name: "latest"})) == (
        f"[OPTION_NOT_APPLICABLE] Option '{name}' has no meaning in a streaming read; it is an option of batch read. "
        "Hint: A stream has no end. Remove it, or read a batch with spark.read."
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("5", "the outermost JSON value must be an object"),
        ('{"t":5}', "topic 't' must have an object of partition numbers and times"),
        ('{"t":{"x":5}}', "topic 't' has 'x' as a partition number"),
        ('{"t":{"0":-1}}', "t-0 must be a time: epoch milliseconds, ISO 8601 (UTC if it names no zone) or "),
        ('{"t":{"0":"soon"}}', "t-0 must be a time: "),
        ("{}", "it names no partition"),
        ('{"t":{"0":1,"0":2}}', "'0' stands in it twice"),
        ("nonsense", "it is not JSON"),
    ],
)
def test_malformed_times_by_partition_are_refused(text: str, reason: str) -> None:
    error = refused(parse_batch_read_options, startingOffsetsByTimestamp=text)
    assert error.condition == "OPTION_INVALID"
    assert str(error).startswith(
        "[OPTION_INVALID] Option 'startingOffsetsByTimestamp' must be JSON of times by partition: expected e.g. "
        '{"topicA":{"0":1767225600000,"1":"2026-01-01T00:00:00Z"},"topicB":{"0":"2 hours ago"}}, got '
    )
    assert reason in str(error)


def test_a_time_before_1970_names_its_partition() -> None:
    error = refused(parse_batch_read_options, startingOffsetsByTimestamp='{"t":{"1":"100000 days ago"}}')
    assert said(error) == "[OPTION_INVALID] Option 'startingOffsetsByTimestamp' must not be before 1970 for t-1."


def test_a_start_that_may_be_in_seconds_is_noted() -> None:
    options = parse_stream_read_options({**READ, "startingTimestamp": "1767225600"})
    assert options.starting == AtTimestamp(1_767_225_600)
    assert options.notes == (
        (
            "Option 'startingTimestamp' is 1767225600: read as milliseconds it is 1970-01-21T10:53:45.600Z, as seconds "
            "it would be 2026-01-01T00:00:00.000Z."
        ),
    )


def test_times_must_cover_what_is_subscribed_to() -> None:
    error = refused(parse_stream_read_options, startingOffsetsByTimestamp='{"u":{"0":1}}')
    assert said(error) == (
        "[OPTION_CONFLICT] Option 'startingOffsetsByTimestamp' names u, not read here and leaves out t; it "
        "must cover what 'subscribe' selects. Hint: Use 'startingTimestamp' for one time for all partitions."
    )
    assigned = {"kafka.bootstrap.servers": "b:9092", "assign": '{"t":[0,1]}'}
    with pytest.raises(OptionError, match=r"'endingOffsetsByTimestamp' names t-2, .* 'endingTimestamp'"):
        parse_batch_read_options({**assigned, "endingOffsetsByTimestamp": '{"t":{"2":1}}'})


def test_start_and_end_by_time_must_name_the_same_partitions() -> None:
    error = refused(
        parse_batch_read_options,
        startingOffsetsByTimestamp='{"t":{"0":1}}',
        endingOffsetsByTimestamp='{"t":{"0":2,"1":2}}',
    )
    assert said(error) == (
        "[MISMATCHED_TOPIC_PARTITIONS_BETWEEN_START_OFFSET_AND_END_OFFSET] Options 'startingOffsetsByTimestamp' and "
        "'endingOffsetsByTimestamp' must name the same partitions; 'startingOffsetsByTimestamp' names t-0, "
        "'endingOffsetsByTimestamp' names t-0, t-1."
    )


def test_a_start_later_than_its_end_is_refused() -> None:
    error = refused(
        parse_batch_read_options,
        startingOffsetsByTimestamp='{"t":{"0":1,"1":2000}}',
        endingOffsetsByTimestamp='{"t":{"0":1,"1":1999}}',
    )
    assert said(error) == (
        "[UNRESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET] Option 'startingOffsetsByTimestamp' is "
        "1970-01-01T00:00:02.000Z for t-1, later than its 'endingOffsetsByTimestamp', 1970-01-01T00:00:01.999Z. Hint: "
        "A read ends before the first record at or after its end."
    )


@pytest.mark.parametrize(
    ("raw", "option", "place", "ending"),
    [
        ({"startingTimestamp": "5", "endingTimestamp": "4"}, "startingTimestamp", "", "endingTimestamp"),
        ({"startingTimestamp": "1 hour ago", "endingTimestamp": "2 hours ago"}, "startingTimestamp", "", ""),
        (
            {"startingOffsetsByTimestamp": '{"t":{"0":5}}', "endingTimestamp": "4"},
            "startingOffsetsByTimestamp",
            " for t-0",
            "endingTimestamp",
        ),
        (
            {"startingTimestamp": "5", "endingOffsetsByTimestamp": '{"t":{"0":4}}'},
            "startingTimestamp",
            " for t-0",
            "endingOffsetsByTimestamp",
        ),
    ],
)
def test_a_start_later_than_its_end_is_refused_however_they_are_written(
    raw: dict[str, str], option: str, place: str, ending: str
) -> None:
    text = str(refused(parse_batch_read_options, **raw))
    assert text.startswith(f"[UNRESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET] Option '{option}' is ")
    assert f"Z{place}, later than its '{ending}" in text


@pytest.mark.parametrize(
    "raw",
    [
        {"startingTimestamp": "5", "endingTimestamp": "5"},
        {"startingOffsetsByTimestamp": '{"t":{"0":5}}', "endingOffsets": '{"t":{"0":4,"1":4}}'},
    ],
)
def test_edges_that_need_a_broker_to_compare_are_accepted(raw: dict[str, str]) -> None:
    assert parse_batch_read_options({**READ, **raw}).notes == ()


def test_a_start_of_latest_stays_refused_in_a_batch() -> None:
    assert "'startingOffsets' cannot be latest" in str(refused(parse_batch_read_options, startingOffsets="latest"))
    assert parse_batch_read_options(READ).starting == Earliest()


def test_a_timestamp_is_shown_in_utc() -> None:
    assert timestamp_text(0) == "1970-01-01T00:00:00.000Z"
    assert timestamp_text(2**63 - 1) == "9223372036854775807 ms since 1970"
