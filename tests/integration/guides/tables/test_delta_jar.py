"""The programs of docs/guides/tables.md and debezium.md for the jar of Delta Lake, on the PySpark that it is for."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

import pytest

from kit.change_events import FIRST_CHANGES, FURTHER_CHANGES, PRODUCTS
from kit.fixtures.broker import TopicMaker
from kit.pages import guide_program
from kit.table_queries import RUNS_OF_ORDERS, KilledQuery, minor_of, order_rows, told_versions

pytestmark = pytest.mark.tables

SESSION = guide_program("tables", "delta-spark")
SHOW_ORDERS = """import json

rows = spark.read.format("delta").load("/tables/orders-delta").select("id", "offset").orderBy("offset").collect()
print(json.dumps([list(row) for row in rows]))
"""
SHOW_PRODUCTS = """import json

print(json.dumps([row.asDict() for row in spark.table("products").orderBy("id").collect()]))
"""


def test_page_names_the_versions() -> None:
    (package,) = re.findall(r'packages", "(.+)"', SESSION)
    assert told_versions("delta-spark") == [minor_of(metadata.version("pyspark")), f"`{package}`"]


def test_batch_of_a_killed_driver_is_in_the_table_once(
    bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    query = KilledQuery(bootstrap_servers, make_topic(), tmp_path)
    write = guide_program("tables", "def write_delta")
    # A new checkpoint: its batch 0 has all orders, and is skipped.
    again = write.replace("/checkpoints/delta", "/checkpoints/again")
    setting = [SESSION, guide_program("tables", "valueFormat")]
    found = query.run(setting, write, SHOW_ORDERS, RUNS_OF_ORDERS, again)
    assert found == [order_rows(6), order_rows(9), order_rows(9)]


def test_merge_of_a_killed_driver_leaves_the_same_table_when_it_runs_again(
    bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    query = KilledQuery(bootstrap_servers, make_topic(), tmp_path)
    merge = guide_program("debezium", "MERGE INTO")
    create = merge.partition("\n\n\n")[0]
    setting = [SESSION, guide_program("debezium", "keySchema"), create]
    assert query.run(setting, merge, SHOW_PRODUCTS, [FIRST_CHANGES, FURTHER_CHANGES, []]) == [PRODUCTS, PRODUCTS]
