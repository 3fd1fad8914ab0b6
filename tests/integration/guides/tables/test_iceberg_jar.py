"""The programs of docs/guides/tables.md and debezium.md for the jar of Iceberg, on the PySpark that it is for."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

import pytest

from kit.change_events import FIRST_CHANGES, FURTHER_CHANGES, PRODUCTS
from kit.fixtures.broker import TopicMaker
from kit.pages import guide_program, guide_text
from kit.table_queries import RUNS_OF_ORDERS, KilledQuery, minor_of, order_rows, told_versions

pytestmark = pytest.mark.tables

SESSION = guide_program("tables", "iceberg-spark-runtime")
REFRESH = guide_program("tables", "REFRESH TABLE")
TABLE = "lake.shop.products"
SHOW_ORDERS = """import json

rows = spark.table("lake.shop.orders").select("id", "offset").orderBy("offset").collect()
print(json.dumps([list(row) for row in rows]))
"""
SHOW_PRODUCTS = f"""import json

spark.sql("REFRESH TABLE {TABLE}")
print(json.dumps([row.asDict() for row in spark.table("{TABLE}").orderBy("id").collect()]))
"""


def test_page_names_the_versions() -> None:
    (package,) = re.findall(r'packages", "(.+)"', SESSION)
    assert told_versions("iceberg-spark-runtime") == [minor_of(metadata.version("pyspark")), f"`{package}`"]


def test_batch_of_a_killed_driver_is_in_the_table_once(
    bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    query = KilledQuery(bootstrap_servers, make_topic(), tmp_path)
    write = guide_program("tables", "def write_iceberg")
    # A new checkpoint: its batch 0 has all orders, and replaces the rows of the former batch 0.
    again = write.replace("/checkpoints/iceberg", "/checkpoints/again")
    setting = [SESSION, guide_program("tables", "valueFormat")]
    # The session shows the table as it had read it, and after REFRESH TABLE as it is. PySpark 4.1 ends an available-now
    # query without asking for more records after a batch that runs again, so there are none.
    show = f"{SHOW_ORDERS}{REFRESH}{SHOW_ORDERS}"
    found = query.run(setting, write, show, [*RUNS_OF_ORDERS[:2], []], again)
    end, anew = order_rows(6), sorted(order_rows(6) + order_rows(6)[3:])
    assert found == [end, end, end, end, end, anew]


def statement(word: str) -> str:
    """Return the statement of docs/guides/debezium.md that has a text."""
    (found,) = [each for each in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", guide_text("debezium")) if word in each]
    return str(found)


def test_merge_of_a_killed_driver_leaves_the_same_table_when_it_runs_again(
    bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    query = KilledQuery(bootstrap_servers, make_topic(), tmp_path)
    # As the page says: the statement of the page, and the name of the table in the merge.
    create = f'spark.sql("{statement("CREATE TABLE IF NOT EXISTS lake.shop.products")}")\n'
    merge = guide_program("debezium", "MERGE INTO").partition("\n\n\n")[2]
    merge = merge.replace(
        "MERGE INTO products USING changed ON products.id", f"MERGE INTO {TABLE} USING changed ON {TABLE}.id"
    )
    setting = [SESSION, guide_program("debezium", "keySchema"), create]
    assert query.run(setting, merge, SHOW_PRODUCTS, [FIRST_CHANGES, FURTHER_CHANGES, []]) == [PRODUCTS, PRODUCTS]
