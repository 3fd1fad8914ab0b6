"""The last records are looked for in bounded memory, and a broker that is silent is waited for once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._ops.operations.tail.request import TailRequest, resolve_read
from pyspark_kafka._ops.operations.tail.tail_topic import Tail
from pyspark_kafka.errors import DeadlineError

SILENT = DeadlineError("No progress.", condition="FETCH_TIMEOUT")


class Reader:
    """Stands for the brokers: each offset has a record, whose time is its offset; some are silent."""

    def __init__(self, windows: Sequence[OffsetRange], silent: frozenset[TopicPartition]) -> None:
        self._silent = silent
        self._waiting = {each.topic_partition: each for each in windows}

    def __enter__(self) -> Reader:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @property
    def is_done(self) -> bool:
        return not self._waiting

    @property
    def unread(self) -> list[TopicPartition]:
        return list(self._waiting)

    def poll(self, timeout_ms: float) -> Iterator[tuple[TopicPartition, pa.RecordBatch]]:
        assert timeout_ms > 0
        known = [each for each in self._waiting if each not in self._silent]
        if not known:
            raise SILENT
        for where in known:
            window = self._waiting.pop(where)
            offsets = pa.array(range(window.start_offset, window.end_offset), pa.int64())
            times = pa.array([each * 1_000 for each in offsets.to_pylist()], pa.timestamp("us", tz="UTC"))
            yield where, pa.RecordBatch.from_arrays([offsets, times], ["offset", "timestamp"])


class Search:
    """Looks for the last records of partitions with 1,000 records each."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, count: int, partitions: int, *, silent_broker: int = -7
    ) -> None:
        self.reads: list[list[OffsetRange]] = []
        self.partitions = [TopicPartition("t", number) for number in range(partitions)]
        read = resolve_read({"kafka.bootstrap.servers": "localhost:9092"}, "t")
        leaders = {each: each.partition % 3 for each in self.partitions}
        silent = frozenset(each for each, leader in leaders.items() if leader == silent_broker)

        def reader(windows: Sequence[OffsetRange], **_: Any) -> Reader:
            self.reads.append(list(windows))
            return Reader(windows, silent)

        with Tail(read, TailRequest("t", count=count)) as tail:
            monkeypatch.setattr(tail, "_reader", reader)
            monkeypatch.setattr(tail, "_leaders", leaders)
            self.starts = tail._find_last(dict.fromkeys(self.partitions, (0, 1_000)))
            self.missing = tail.missing


def test_memory_is_bounded_by_what_is_asked_for_and_not_by_the_partitions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = Search(monkeypatch, 150_000, 1_000)
    assert sum(1_000 - start for start in found.starts.values()) == 150_000
    assert max(sum(each.size for each in read) for read in found.reads) <= 150_000
    assert found.missing == []


def test_few_records_of_many_partitions_are_found_in_one_read(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Search(monkeypatch, 10, 5_000)
    assert len(found.reads) == 1
    assert sum(1_000 - start for start in found.starts.values()) == 10


@pytest.mark.parametrize(("count", "partitions"), [(3_000, 9), (200_000, 900)])
def test_broker_that_is_silent_is_waited_for_once_and_named_once(
    monkeypatch: pytest.MonkeyPatch, count: int, partitions: int
) -> None:
    found = Search(monkeypatch, count, partitions, silent_broker=1)
    silent = [each for each in found.partitions if each.partition % 3 == 1]
    waited = [read for read in found.reads if any(each.topic_partition in silent for each in read)]
    assert len(found.reads) > 1
    assert len(waited) == 1
    others = f"t-1 and {len(silent) - 1} other partitions are"
    assert found.missing == [f"{others} not read to the end: {SILENT}"]
    # The others have all that is asked for, or all that they hold.
    assert all(found.starts[each] == 1_000 for each in silent)
    told = sum(1_000 - start for start in found.starts.values())
    assert told == min(count, 1_000 * (partitions - len(silent)))
