"""The programs of docs/guides/debezium.md over change events in Debezium's form."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kit.change_events import FIRST_CHANGES, FURTHER_CHANGES, PRODUCTS
from kit.fixtures.broker import TopicMaker
from kit.independent_client import produce
from kit.pages import GuidePage


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
    produce(bootstrap_servers, topic, FIRST_CHANGES)
    page.run("keySchema")
    page.run("def append")

    produce(bootstrap_servers, topic, FURTHER_CHANGES)
    page.run("def append")
    capsys.readouterr()
    page.run('max_by(f.struct("op"')

    assert [row.asDict() for row in page.names["products"].orderBy("id").collect()] == PRODUCTS
    assert "|pear|   65|" in capsys.readouterr().out
    history = page.names["history"]
    assert [row.op for row in history.orderBy("offset").collect()] == list("rccududc")
    assert history.where("op = 'd'").select("before.name").distinct().count() == 2
