"""The story of docs/guides/bad-record.md: the error, the record, the programs and commands that continue."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, await_committed, produce
from kit.pages import GuidePage
from pyspark_kafka._ops.operations.checkpoints.forking.rewind import QUIET_S

_GOOD = [b'{"id":1,"amount":1.5}', b'{"id":2,"amount":2.5}']
_BAD = b'{"id":3,"amount":"3,50"}'
_LATER = b'{"id":4,"amount":4.5}'


def add_former_program(page: GuidePage) -> None:
    """Add the query as it was before the night: the program of the page without its new lines."""
    lines = page.program("dead_letters").splitlines()
    kept = "\n".join(line for line in lines if "# new" not in line and "letters.write" not in line)
    page.text += "\n```python\n# before\n" + kept.replace('.where("_corrupt_record IS NULL")', "") + "\n```\n"


def error_of(page: GuidePage) -> str:
    """Run the query as it was before, which stops at the bad record; return the first line of its own error."""
    add_former_program(page)
    with pytest.raises(Exception, match="BAD_RECORD") as caught:
        page.run("# before")
    assert str(caught.value).startswith("[STREAM_FAILED]")
    lines: set[str] = set(re.findall(r"\[BAD_RECORD[^\n]*", str(caught.value)))
    (line,) = lines
    return line


@pytest.mark.full("Programs of the pages")
def test_guide_continues_a_query_that_one_record_stops(
    spark: SparkSession,
    bootstrap_servers: str,
    make_topic: TopicMaker,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic = make_topic()
    dead = f"{topic}.dead"
    own = {
        "localhost:9092": bootstrap_servers,
        "orders.dead": dead,
        '"orders"': f'"{topic}"',
        '"/tables': f'"{tmp_path}/tables',
    }
    own |= {"tail orders": f"tail {topic}", "/checkpoints": f"{tmp_path}/checkpoints"}
    page = GuidePage("bad-record", spark, own)
    produce(bootstrap_servers, topic, [Record(b"k", value) for value in (*_GOOD, _BAD, _LATER)])

    line = error_of(page)
    shown = page.text.partition("```text\n")[2].partition("```")[0]
    assert " ".join(shown.split()) in line.replace(topic, "orders")
    assert _BAD.decode() in page.command("tail orders")

    page.command("topics create")
    page.run("dead_letters")
    rows = spark.read.parquet(str(tmp_path / "tables" / "orders")).collect()
    assert sorted((row.id, row.amount) for row in rows) == [(1, 1.5), (2, 2.5), (4, 4.5)]
    await_committed(bootstrap_servers, dead, [_BAD])

    capsys.readouterr()
    page.run("redrive")
    assert "TYPE_MISMATCH" in capsys.readouterr().out
    await_committed(bootstrap_servers, topic, [*_GOOD, _BAD, _LATER, _BAD])


@pytest.mark.full("Programs of the pages")
def test_guide_skips_the_record(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = make_topic()
    own = {"localhost:9092": bootstrap_servers, '"orders"': f'"{topic}"', '"/tables': f'"{tmp_path}/tables'}
    page = GuidePage("bad-record", spark, {**own, "/checkpoints": f"{tmp_path}/checkpoints"})
    produce(bootstrap_servers, topic, [Record(b"k", value) for value in _GOOD])
    add_former_program(page)
    page.run("# before")
    produce(bootstrap_servers, topic, [Record(b"k", value) for value in (_BAD, _LATER)])
    with pytest.raises(Exception, match="BAD_RECORD"):
        page.run("# before")

    assert "[CHECKPOINT_IN_USE]" in page.refused("checkpoint rewind")
    assert f"wait {QUIET_S:.0f} s" in page.text
    page.command("checkpoint rewind", "--force")
    page.run("# before")

    rows = spark.read.parquet(str(tmp_path / "tables" / "orders")).collect()
    assert sorted(row.id for row in rows) == [1, 2, 4]
