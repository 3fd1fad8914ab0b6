"""LagPositions of queries, from what Spark reports of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._ops.metrics.query_lag import progress_positions, query_positions

A, B = TopicPartition("t", 0), TopicPartition("u", 0)


def query(name: str | None, query_id: str, *ends: Any) -> Any:
    progress = {"sources": [{"endOffset": end} for end in ends]} if ends else None
    return SimpleNamespace(name=name, id=query_id, lastProgress=progress)


def test_positions_are_the_ends_of_all_kafka_sources_and_the_lower_one_counts() -> None:
    sources = [
        {"endOffset": '{"t":{"0":9}}'},
        {"endOffset": {"t": {"0": 5}, "u": {"0": 1}}},
        {"endOffset": '{"logOffset":3}'},
        # As PySpark 4.0 and 4.1 show it.
        {"endOffset": "{'t': {'0': 4}}"},
    ]
    assert progress_positions(sources) == {A: 4, B: 1}


def test_sources_without_an_offset_are_left_out() -> None:
    assert progress_positions([{"endOffset": None}, {"endOffset": "null"}]) == {}


def test_queries_are_known_by_their_names_or_by_their_ids_if_names_are_not_enough() -> None:
    text = '{"t":{"0":9}}'
    active = [query("one", "1", text), query(None, "2", text), query("x", "3", text), query("x", "4", text)]
    session: Any = SimpleNamespace(streams=SimpleNamespace(active=active))
    found = query_positions(session)
    assert list(found) == ["one", "2", "3", "4"]
    assert found["one"].origin == "query one"


def test_queries_without_progress_or_without_kafka_are_left_out() -> None:
    active = [query("new", "1"), query("files", "2", '{"logOffset":3}')]
    session: Any = SimpleNamespace(streams=SimpleNamespace(active=active))
    assert query_positions(session) == {}
