"""The programs of docs/exactly-once.md, run as they stand but for addresses and places."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, await_committed, produce

pytestmark = pytest.mark.full("Programs of the pages")

_DOC = Path(__file__).parents[4] / "docs" / "exactly-once.md"


def test_the_programs_write_once(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(), make_topic()
    produce(bootstrap_servers, source, [Record(b"k", b"v%d" % number) for number in range(5)])
    common = {"kafka.bootstrap.servers": bootstrap_servers, "subscribe": source, "startingOffsets": "earliest"}
    by_driver, batch, by_tasks = re.findall(r"```python\n(.*?)```", _DOC.read_text(), re.DOTALL)
    for program in (by_driver, by_driver, batch, by_tasks):
        # A query of its own for the tasks: its checkpoint is another one.
        place = tmp_path / ("tasks" if program is by_tasks else "driver")
        text = program.replace("localhost:9092", bootstrap_servers).replace("/checkpoints", str(place))
        text = text.replace('"orders-out"', f'"{target}"').replace(".start()", ".trigger(availableNow=True).start()")
        streaming = program is not batch
        reader = spark.readStream if streaming else spark.read
        names: dict[str, Any] = {"orders": reader.format("pyspark_kafka").options(**common).load().select("value")}
        exec(text, names)  # noqa: S102 - our own text
        if streaming:
            names["query"].awaitTermination()
    # Once by the first stream, though it was run twice, once by the batch write, and once by the tasks of a stream.
    await_committed(bootstrap_servers, target, [b"v%d" % number for number in range(5)] * 3)
