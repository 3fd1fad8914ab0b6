"""The programs of docs/guides/debezium.md over change events in Debezium's form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.pages import GuidePage

_APPLE, _PEAR, _PLUM = (
    {"id": 1, "name": "apple", "cents": 50},
    {"id": 2, "name": "pear", "cents": 60},
    {"id": 3, "name": "plum", "cents": 70},
)
_DEARER = {**_PEAR, "cents": 65}


def change(op: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> Record:
    """Return an event as the connector for PostgreSQL writes it, with more fields than the guide reads."""
    key = {"id": (after or before or {})["id"]}
    source = {"connector": "postgresql", "db": "shop", "table": "products", "lsn": 24023128, "snapshot": "false"}
    # All in one millisecond: only offsets have the order.
    envelope = {"before": before, "after": after, "source": source, "op": op, "ts_ms": 1767225600000}
    return Record(json.dumps(key).encode(), json.dumps(envelope).encode())


@pytest.mark.full("Programs of the pages")
def test_guide_builds_the_table_from_changes_deletes_and_tombstones(
    spark: SparkSession,
    bootstrap_servers: str,
    make_topic: TopicMaker,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic = make_topic()
    places = {"localhost:9092": bootstrap_servers, "shop.public.products": topic}
    page = GuidePage("debezium", spark, {**places, '"/': f'"{tmp_path}/'})
    first = [change("r", None, _APPLE), change("c", None, _PEAR), change("c", None, _PLUM)]
    produce(bootstrap_servers, topic, first)
    page.run("keySchema")
    page.run("def append")

    second = [
        change("u", _PEAR, _DEARER),
        change("d", _APPLE, None),
        Record(b'{"id": 1}', None),
        change("u", _PLUM, {**_PLUM, "name": "prune"}),
        change("d", _PLUM, None),
        Record(b'{"id": 3}', None),
        change("c", None, _PLUM),
    ]
    produce(bootstrap_servers, topic, second)
    page.run("def append")
    capsys.readouterr()
    page.run('max_by(f.struct("op"')

    assert [row.asDict() for row in page.names["products"].orderBy("id").collect()] == [_DEARER, _PLUM]
    assert "|pear|   65|" in capsys.readouterr().out
    history = page.names["history"]
    assert [row.op for row in history.orderBy("offset").collect()] == list("rccududc")
    assert history.where("op = 'd'").select("before.name").distinct().count() == 2
