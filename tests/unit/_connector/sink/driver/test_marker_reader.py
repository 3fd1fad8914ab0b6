"""How the newest commit marker of a sink is found, over a log in memory."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._base.offsets import Earliest
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.waiting.retry import Backoff
from pyspark_kafka._connector.sink.commit_marker import CommitMarker
from pyspark_kafka._connector.sink.driver import marker_reader
from pyspark_kafka._connector.sink.driver.commit_topic import CommitTopic
from pyspark_kafka._connector.sink.driver.marker_reader import MarkerReader

PLACE = TopicPartition("commits", 0)
FIRST, END = 7, 3_000


class FakeTopic:
    partition_count = 1

    def partition_of(self, _: str) -> TopicPartition:
        return PLACE

    def partitions(self) -> list[TopicPartition]:
        return [PLACE]


class LogReader(MarkerReader):
    """Reads markers from a dictionary; notes what it has looked through."""

    def __init__(self, markers: dict[int, CommitMarker]) -> None:
        client = SimpleNamespace(backoff=lambda: Backoff(1, 1))
        super().__init__(cast("KafkaClient", client), cast("CommitTopic", FakeTopic()), 1_000)
        self.markers = markers
        self.looked: list[range] = []

    def _newest(self, offset_range: OffsetRange, keys: Iterable[str], query_id: str | None) -> dict[str, CommitMarker]:
        assert query_id is None
        offsets = range(offset_range.start_offset, offset_range.end_offset)
        self.looked.append(offsets)
        return {key: self.markers[offset] for key in keys for offset in offsets if offset in self.markers}


@pytest.fixture(autouse=True)
def _log(monkeypatch: pytest.MonkeyPatch) -> None:
    def ends(_: KafkaClient, wanted: dict[TopicPartition, Any], *__: Any) -> dict[TopicPartition, int]:
        return {where: FIRST if isinstance(spec, Earliest) else END for where, spec in wanted.items()}

    monkeypatch.setattr(marker_reader, "list_offsets", ends)


@pytest.mark.parametrize("back", [1, 8, 9, 8 + 64, 8 + 64 + 1, 8 + 64 + 512, 8 + 64 + 512 + 1, END - FIRST])
def test_newest_marker_is_found_wherever_the_windows_of_the_search_meet(back: int) -> None:
    newest, older = (CommitMarker("sink", "query", number, "", partitions=1) for number in (2, 1))
    reader = LogReader({FIRST: older} | {END - back: newest})
    assert reader.read("sink") == newest


def test_search_without_a_marker_looks_at_every_offset_once() -> None:
    reader = LogReader({})
    assert reader.read("sink") is None
    assert sorted(offset for looked in reader.looked for offset in looked) == list(range(FIRST, END))
