"""Queries of guides that write tables, whose driver is killed between the write of a batch and the batch's end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kit.independent_client import Record, produce
from kit.pages import GuideScript, guide_text

# Without jars, the session of the programs is any.
PLAIN_SESSION = "from pyspark.sql import SparkSession\n\nspark = SparkSession.builder.getOrCreate()\n"


class KilledQuery:
    """A query that is run to its end, run until its driver is killed in batch 1, and run to its end again.

    Args:
        bootstrap_servers: the broker.
        topic: what the query reads; an empty one.
        place: a folder for the tables and the checkpoints.
    """

    def __init__(self, bootstrap_servers: str, topic: str, place: Path) -> None:
        self._servers, self._topic, self._place = bootstrap_servers, topic, place
        (place / "tables").mkdir()

    def run(
        self, setting: Sequence[str], write: str, show: str, runs: Sequence[list[Record]], further: str = ""
    ) -> list[Any]:
        """Run it; return what the table held after the death, in the end, and after a further program.

        Args:
            setting: the programs that make the session and the stream.
            write: the program that writes the table, with `foreachBatch`.
            show: a program that prints what the table holds, in a line of JSON.
            runs: the records that are added before each of the three runs.
            further: one more program that writes the table, or none.
        """
        query = self._script(*setting, write)
        produce(self._servers, self._topic, runs[0])
        query.run_until_killed(1, lambda: produce(self._servers, self._topic, runs[1]))
        (commits,) = self._place.glob("checkpoints/*/commits")
        assert [path.name for path in commits.iterdir() if path.name.isdigit()] == ["0"]
        produce(self._servers, self._topic, runs[2])
        found = self._script(*setting, show, write, show, *([further, show] if further else [])).run()
        assert (commits / "1").exists()
        return found

    def _script(self, *programs: str) -> GuideScript:
        folder = self._place
        replaced = {
            "localhost:9092": self._servers,
            '"orders"': f'"{self._topic}"',
            '"shop.public.products"': f'"{self._topic}"',
            "file:///tables/": f"file://{folder}/tables/",
            "sqlite:////tables/": f"sqlite:///{folder}/tables/",
            '"/tables/': f'"{folder}/tables/',
            "'/tables/": f"'{folder}/tables/",
            '"/checkpoints/': f'"{folder}/checkpoints/',
        }
        return GuideScript(programs, replaced, folder)


def order_records(first: int, last: int) -> list[Record]:
    """Return orders by id."""
    return [Record(b"k", b'{"id":%d,"amount":1.5}' % number) for number in range(first, last + 1)]


# The orders of each run, and the rows of a table that has each once: id and offset.
RUNS_OF_ORDERS = [order_records(1, 3), order_records(4, 6), order_records(7, 9)]


def order_rows(last: int) -> list[list[int]]:
    """Return the rows of the orders up to an id."""
    return [[number, number - 1] for number in range(1, last + 1)]


def told_versions(word: str) -> list[str]:
    """Return the version of PySpark and the package that docs/guides/tables.md names as run, in the row with a text."""
    rows = guide_text("tables").partition("## What was run")[2].splitlines()
    (row,) = [row for row in rows if row.startswith("| ") and word in row]
    return row.strip("| ").split(" | ")[1:3]


def minor_of(version: str) -> str:
    """Return the first two numbers of a version."""
    return ".".join(version.split(".")[:2])
