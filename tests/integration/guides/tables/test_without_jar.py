"""The programs of docs/guides/tables.md and debezium.md that write tables with Python packages, without a jar."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from kit.change_events import FIRST_CHANGES, FURTHER_CHANGES, PRODUCTS
from kit.fixtures.broker import TopicMaker
from kit.pages import guide_program
from kit.table_queries import PLAIN_SESSION, RUNS_OF_ORDERS, KilledQuery, minor_of, order_rows, told_versions

pytestmark = pytest.mark.tables

# Arrow data have the times of the session's zone with some versions of PySpark; tables need UTC.
ZONE = 'spark.conf.set("spark.sql.session.timeZone", "America/New_York")\n'
SHOW_DELTA = """import json

from deltalake import DeltaTable

found = DeltaTable("/tables/orders-deltalake").to_pyarrow_table().select(["id", "offset"]).sort_by("offset")
print(json.dumps([list(row.values()) for row in found.to_pylist()]))
"""
SHOW_ICEBERG = """import json

from pyiceberg.catalog import load_catalog

tables = load_catalog("lake", type="sql", uri="sqlite:////tables/catalog.db", warehouse="file:///tables/lake")
found = tables.load_table("shop.orders").scan().to_arrow().select(["id", "offset"]).sort_by("offset")
print(json.dumps([list(row.values()) for row in found.to_pylist()]))
"""
SHOW_PRODUCTS = """import json

from deltalake import DeltaTable

print(json.dumps(DeltaTable("/tables/products-deltalake").to_pyarrow_table().sort_by("id").to_pylist()))
"""


@pytest.mark.parametrize("package", ["deltalake", "pyiceberg"])
def test_page_names_the_versions(package: str) -> None:
    version = minor_of(metadata.version(package))
    assert told_versions(f"`{package}`") == [minor_of(metadata.version("pyspark")), f"`{package}` {version}"]


def test_batch_of_a_killed_driver_is_in_delta_lake_once(
    bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    query = KilledQuery(bootstrap_servers, make_topic(), tmp_path)
    write = guide_program("tables", "def write_without_jar")
    # A new checkpoint: its batch 0 has all orders, and is skipped.
    again = write.replace("/checkpoints/deltalake", "/checkpoints/again")
    setting = [PLAIN_SESSION, ZONE, guide_program("tables", "valueFormat")]
    found = query.run(setting, write, SHOW_DELTA, RUNS_OF_ORDERS, again)
    assert found == [order_rows(6), order_rows(9), order_rows(9)]


def test_batch_of_a_killed_driver_is_in_iceberg_once(
    bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    query = KilledQuery(bootstrap_servers, make_topic(), tmp_path)
    write = guide_program("tables", "def write_pyiceberg")
    # A new checkpoint: its batch 0 has all orders, and replaces the rows of the former batch 0.
    again = write.replace("/checkpoints/pyiceberg", "/checkpoints/again")
    setting = [PLAIN_SESSION, ZONE, guide_program("tables", "valueFormat")]
    found = query.run(setting, write, SHOW_ICEBERG, RUNS_OF_ORDERS, again)
    assert found == [order_rows(6), order_rows(9), sorted(order_rows(9) + order_rows(9)[3:])]


def test_merge_of_a_killed_driver_leaves_the_same_table_when_it_runs_again(
    bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    query = KilledQuery(bootstrap_servers, make_topic(), tmp_path)
    setting = [PLAIN_SESSION, guide_program("debezium", "keySchema")]
    merge = guide_program("debezium", "def merge_without_jar")
    assert query.run(setting, merge, SHOW_PRODUCTS, [FIRST_CHANGES, FURTHER_CHANGES, []]) == [PRODUCTS, PRODUCTS]
