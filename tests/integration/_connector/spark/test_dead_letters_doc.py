"""The programs of docs/dead-letters.md, one after the other, run as they stand but for addresses, names and places."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, await_committed, produce

pytestmark = pytest.mark.full("Programs of the pages")

_DOC = Path(__file__).parents[4] / "docs" / "dead-letters.md"
_GOOD = [b'{"id":1,"amount":1.5}', b'{"id":2,"amount":0.0}']
_BAD = [b"{", b'{"id":"x"}']


def test_the_programs_write_dead_letters_and_send_them_back(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, valid, dead = make_topic(), make_topic(), make_topic()
    produce(bootstrap_servers, source, [Record(b"k", value) for value in (*_GOOD, *_BAD)])
    replaced = {
        "localhost:9092": bootstrap_servers,
        '"orders"': f'"{source}"',
        "'orders'": f"'{source}'",
        "orders.valid": valid,
        "orders.dead": dead,
        '"/': f'"{tmp_path}/',
        ".start()": ".trigger(availableNow=True).start()",
    }
    programs = re.findall(r"```python\n(.*?)```", _DOC.read_text(), re.DOTALL)
    names: dict[str, Any] = {"spark": spark}

    def run(program: str) -> None:
        for old, new in replaced.items():
            program = program.replace(old, new)
        exec(program, names)  # noqa: S102 - our own text
        if "query" in names:
            names.pop("query").awaitTermination()

    read, together, in_avro, alone, back = programs
    run(read)
    run(together)
    await_committed(bootstrap_servers, valid, _GOOD)
    await_committed(bootstrap_servers, dead, _BAD)
    run(in_avro)
    # With the rows of that program, as another query.
    _, start, rest = together.partition("query = ")
    run((start + rest).replace("/checkpoints/orders", "/checkpoints/avro"))
    await_committed(bootstrap_servers, valid, [*_GOOD, b"\x02\x02", b"\x02\x04"])
    await_committed(bootstrap_servers, dead, _BAD * 2)
    run(alone)
    assert sorted(row["id"] for row in spark.read.parquet(str(tmp_path / "tables" / "orders")).collect()) == [1, 2]
    await_committed(bootstrap_servers, dead, _BAD * 3)
    run(back)
    # It chooses one of the two reasons.
    await_committed(bootstrap_servers, source, [*_GOOD, *_BAD, *_BAD[:1] * 3])
