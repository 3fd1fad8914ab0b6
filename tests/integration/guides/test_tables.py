"""The programs of docs/guides/tables.md, with a driver that fails between a write and the end of its batch."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.pages import GuidePage


def orders(first: int, last: int) -> list[Record]:
    """Return orders by id."""
    return [Record(b"k", b'{"id":%d,"amount":1.5}' % number) for number in range(first, last + 1)]


@pytest.mark.full("Programs of the pages")
def test_batch_that_runs_again_is_in_parquet_once(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = make_topic()
    own = {"localhost:9092": bootstrap_servers, '"orders"': f'"{topic}"', '"/': f'"{tmp_path}/'}
    page = GuidePage("tables", spark, own)
    produce(bootstrap_servers, topic, orders(1, 3))
    page.run("valueFormat")
    page.run("def write(")

    produce(bootstrap_servers, topic, orders(4, 6))
    dying = page.program("def write(").replace("\n\n\n", '\n    raise RuntimeError("the driver dies")\n\n\n')
    page.text += f"\n```python\n# It dies.\n{dying}```\n"
    with pytest.raises(Exception, match="the driver dies"):
        page.run("# It dies.")
    table = tmp_path / "tables" / "orders-by-batch"
    assert spark.read.parquet(str(table)).count() == 6
    # Later records are of another batch.
    produce(bootstrap_servers, topic, orders(7, 9))
    page.text = page.text.partition("\n```python\n# It dies.")[0]
    page.run("def write(")

    rows = spark.read.parquet(str(table)).select("id", "batch", "offset").orderBy("id").collect()
    assert [(row.id, row.batch, row.offset) for row in rows] == [(n, (n - 1) // 3, n - 1) for n in range(1, 10)]
    assert all((table / f"batch={number}" / "_SUCCESS").exists() for number in range(3))

    page.run('format("parquet")')
    assert spark.read.parquet(str(tmp_path / "tables" / "orders")).count() == 9
