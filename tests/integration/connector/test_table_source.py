"""A table as a PySpark data source: batch, micro-batch and sink, and mistakes of its author."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pyspark_kafka import as_data_source
from pyspark_kafka.connector import Scan, ScanBuilder, SimpleSource
from pyspark_kafka.errors import ContractError


class Numbers(SimpleSource):
    """The numbers from 0 on: ten more at each look-up, up to option `upTo`."""

    def name(self) -> str:
        return "numbers"

    def schema(self, options: Mapping[str, str]) -> pa.Schema:  # noqa: ARG002
        return pa.schema([pa.field("n", pa.int64(), nullable=False), pa.field("text", pa.string())])

    def initial(self, options: Mapping[str, str]) -> Any:  # noqa: ARG002
        return 0

    def latest(self, options: Mapping[str, str], start: Any) -> Any:
        return min(start + 10, int(options.get("UPTO", "10")))

    def split(self, options: Mapping[str, str], start: Any, end: Any) -> Sequence[tuple[Any, Any]]:  # noqa: ARG002
        middle = (start + end) // 2
        return [(start, middle), (middle, end)]

    def read(self, options: Mapping[str, str], start: Any, end: Any) -> Iterable[Any]:  # noqa: ARG002
        for number in range(start, end):
            yield {"n": number, "text": str(number)} if number % 2 else (number, None)


def test_simple_source_is_read_in_a_batch(spark: SparkSession) -> None:
    spark.dataSource.register(as_data_source(Numbers()))
    rows = spark.read.format("numbers").option("upto", 7).load().collect()
    assert [(row.n, row.text) for row in rows] == [(n, str(n) if n % 2 else None) for n in range(7)]


def test_simple_source_is_read_in_micro_batches_and_continues(spark: SparkSession, tmp_path: Path) -> None:
    spark.dataSource.register(as_data_source(Numbers()))
    found: list[tuple[int, list[int]]] = []
    for up_to in (10, 25, 25):
        query = (
            spark.readStream.format("numbers").option("upTo", up_to).load()
            .writeStream.foreachBatch(lambda df, epoch: found.append((epoch, sorted(row.n for row in df.collect()))))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination(120)
    assert [n for _, numbers in found for n in numbers] == list(range(25))
    committed = (tmp_path / "checkpoint/offsets/2").read_text().splitlines()[-1]
    assert json.loads(committed) == {"at": 25}


class Ending(Numbers):
    """A source whose stream makes the file of option `place` when it is stopped."""

    def name(self) -> str:
        return "ending"

    def newScanBuilder(self, options: Mapping[str, str]) -> ScanBuilder:  # noqa: N802 - of the contract
        return EndingBuilder(super().newScanBuilder(options), Path(options["PLACE"]))


class EndingBuilder(ScanBuilder):
    def __init__(self, builder: ScanBuilder, place: Path) -> None:
        self._builder, self._place = builder, place

    def build(self) -> Scan:
        scan = self._builder.build()
        stream = scan.toMicroBatchStream(None)
        stream.stop = self._place.touch  # type: ignore[method-assign]
        scan.toMicroBatchStream = lambda _: stream  # type: ignore[method-assign, assignment]
        return scan


def test_stream_is_stopped_when_its_query_ends(spark: SparkSession, tmp_path: Path) -> None:
    """Spark itself only sends the process SIGTERM."""
    # Spark's processes import this module, and have no kit.
    from kit.waiting import eventually  # noqa: PLC0415

    spark.dataSource.register(as_data_source(Ending()))
    stopped = tmp_path / "stopped"
    query = (
        spark.readStream.format("ending").option("place", str(stopped)).load()
        .writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True).start()
    )  # fmt: skip
    assert query.awaitTermination(300)
    eventually(stopped.exists)


def mistaken(**methods: Callable[..., Any]) -> SimpleSource:
    return type("Mistaken", (Numbers,), {"name": lambda _: "mistaken", **methods})()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            mistaken(read=lambda *_: None),
            "Mistaken.read() must return rows (a list or a generator), and returned None.",
        ),
        (
            mistaken(read=lambda *_: [7]),
            "Mistaken.read() must return dictionaries, or tuples of 2 values, and returned an int.",
        ),
        (mistaken(read=lambda *_: [(1, 2, 3)]), "and returned 3 values."),
        (
            mistaken(read=lambda *_: [{"m": 1}]),
            "Mistaken.read() returned a row with the columns ['m'], which the schema ['n', 'text'] lacks.",
        ),
        (
            mistaken(read=lambda *_: [{"n": "one"}]),
            "Mistaken.read() returned a str for column 'n' of type int64",
        ),
        (
            mistaken(read=lambda *_: [{"text": "one"}]),
            "Mistaken.read() returned a null in column 'n', which has none.",
        ),
        (mistaken(initial=lambda *_: None), "Mistaken.initial() must return a position, and returned None."),
        (
            mistaken(initial=lambda *_: {1: 2}),
            "Mistaken.initial() returned a dict that is another value after a way through JSON.",
        ),
        (mistaken(schema=lambda *_: ["n"]), "Mistaken.schema() must return a Schema, and returned a list."),
    ],
)
def test_mistake_is_told_in_one_sentence(spark: SparkSession, source: SimpleSource, text: str) -> None:
    spark.dataSource.register(as_data_source(source))
    with pytest.raises(PySparkException) as raised:
        spark.read.format("mistaken").load().collect()
    assert "[CONTRACT_VIOLATED] " in str(raised.value)
    assert text in str(raised.value)


def test_write_to_a_table_that_cannot_be_written_names_the_capability(spark: SparkSession) -> None:
    spark.dataSource.register(as_data_source(Numbers()))
    with pytest.raises(
        PySparkException, match=r"CAPABILITY_MISSING.*lacks the capability BATCH_WRITE; it has: BATCH_READ"
    ):
        spark.range(1).write.format("numbers").mode("append").save()


def test_schema_of_the_user_must_be_the_table_s(spark: SparkSession) -> None:
    spark.dataSource.register(as_data_source(Numbers()))
    with pytest.raises(PySparkException, match=r"SCHEMA_NOT_SUPPORTED.*expected the columns"):
        spark.read.format("numbers").schema("n long").load().collect()


def test_class_in_place_of_a_table_is_told() -> None:
    with pytest.raises(ContractError, match=r"Write as_data_source\(Numbers\(\)\)"):
        as_data_source(Numbers)  # type: ignore[arg-type]
