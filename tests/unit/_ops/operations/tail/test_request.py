"""Where to begin, and which options of a query count."""

from __future__ import annotations

import pytest

from pyspark_kafka._base.model import IsolationLevel
from pyspark_kafka._base.offsets import AtTimestamp, Earliest, Latest
from pyspark_kafka._client.options import StreamReadOptions
from pyspark_kafka._ops.operations.tail.request import TailStart, check_partitions, parse_start, resolve_read
from pyspark_kafka.errors import OptionError

NOW_MS = 1_767_225_600_000


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("earliest", Earliest()),
        (" LATEST ", Latest()),
        ("0", 0),
        ("123456789012345678", 123456789012345678),
        ("10 minutes ago", AtTimestamp(NOW_MS - 600_000)),
        ("now", AtTimestamp(NOW_MS)),
        ("2026-01-01T01:00:00.007+01:00", AtTimestamp(NOW_MS + 7)),
    ],
)
def test_start_is_a_bound_an_offset_or_a_time(text: str, start: TailStart) -> None:
    assert parse_start(text, NOW_MS) == start


@pytest.mark.parametrize("text", ["", "-1", "yesterday", "1234567890123456789", "²", "60 years ago", "2026-13-01"])
def test_other_starts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^must be "):
        parse_start(text, NOW_MS)


def test_options_of_a_query_keep_what_is_not_asked_for_here() -> None:
    given = {
        "bootstrap.servers": "one:1",
        "subscribePattern": "a.*",
        "startingOffsets": "earliest",
        "endingOffsets": "latest",
        "topic": "copies",
        "deliveryGuarantee": "exactly_once",
        "checkpointLocation": "/c",
        "kafka.isolation.level": "read_committed",
        "mode": "FAILFAST",
        "valueFormat": "string",
        "maxCorruptRatio": "0.1",
    }
    read = resolve_read(given, "orders")
    assert isinstance(read, StreamReadOptions)
    assert read.subscription.topics == ("orders",)
    assert (read.fetch.isolation_level, read.include_headers) == (IsolationLevel.READ_COMMITTED, True)
    assert read.checkpoint_location is None
    assert read.typed is not None
    assert (read.typed.mode, read.typed.max_corrupt_ratio) == ("PERMISSIVE", 1.0)


def test_option_that_nobody_has_is_refused() -> None:
    with pytest.raises(OptionError, match="valueFromat"):
        resolve_read({"bootstrap.servers": "one:1", "valueFromat": "avro"}, "orders")


def test_partition_that_is_not_there_is_refused() -> None:
    check_partitions(frozenset({0, 2}), 3, "t")
    with pytest.raises(OptionError, match="has no partition 3; it has 3, 0 to 2"):
        check_partitions(frozenset({1, 3, 4}), 3, "t")
