"""The programs of docs/typed-formats.md, in order and in one session, as they stand but for addresses and topics."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from kit.fakes.schema_registry import SchemaRegistryServer
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, consume_committed, produce
from kit.waiting import eventually
from pyspark_kafka.formats import decode

pytestmark = pytest.mark.full("Programs of the pages")

_DOC = Path(__file__).parents[4] / "docs" / "typed-formats.md"
_ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "cents", "type": "long"},
    ],
}
_NEWER = {**_ORDER, "fields": [*_ORDER["fields"], {"name": "country", "type": "string", "default": "DE"}]}
_TOPIC = re.compile(r"""(?<=["'])(orders(?:-[a-z]+)*|clicks)(?=["'])""")


def written(schema_id: int, schema: Any, **order: Any) -> bytes:
    """Return a value as Confluent's serializers write it, by another library than ours."""
    out = io.BytesIO(b"\x00" + schema_id.to_bytes(4, "big"))
    out.seek(0, io.SEEK_END)
    fastavro.schemaless_writer(out, schema, order)
    return out.getvalue()


class Page:
    """The page's programs, which share their names, as in one notebook."""

    def __init__(self, spark: SparkSession, bootstrap_servers: str, registry: str, topics: dict[str, str]) -> None:
        self.topics = topics
        self._replaced = {"localhost:9092": bootstrap_servers, "http://localhost:8081": registry}
        self.programs = re.findall(r"```python\n(.*?)```", _DOC.read_text(), re.DOTALL)
        self.names: dict[str, Any] = {"spark": spark}
        self.count = 0

    def run(self, begin: str) -> dict[str, Any]:
        """Run the programs up to and with the one that has a text, each once."""
        while True:
            text = self.programs[self.count]
            self.count += 1
            mine = _TOPIC.sub(lambda match: self.topics[match[0]], text)
            for old, new in self._replaced.items():
                mine = mine.replace(old, new)
            exec(compile(mine, f"{_DOC.name}: program {self.count}", "exec"), self.names)  # noqa: S102 - our own page
            if begin in text:
                return self.names


@pytest.fixture
def page(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, schema_registry: SchemaRegistryServer
) -> Page:
    names = ("orders", "orders-dead-letters", "orders-typed", "orders-json", "clicks")
    topics = {name: make_topic() for name in names}
    older = schema_registry.add(f"{topics['orders']}-value", json.dumps(_ORDER))
    newer = schema_registry.add(f"{topics['orders']}-value", json.dumps(_NEWER))
    schema_registry.add(f"{topics['orders-typed']}-value", json.dumps(_NEWER))
    values = [
        written(older, _ORDER, id=1, customer="Ada", cents=250),
        b"not Avro",
        written(newer, _NEWER, id=2, customer="Bo", cents=975, country="SE"),
        None,
        b"\x00\x00\x00\x03\xe8\x00",
    ]
    records = [Record(b"k%d" % row, value, headers=[("origin", b"here")]) for row, value in enumerate(values)]
    produce(bootstrap_servers, topics["orders"], records)
    clicks = [b'{"id": 1, "page": "/"}', b'{"id": 2, "page": "/help"}', b'{"id": 3, "page": "/"}']
    produce(bootstrap_servers, topics["clicks"], [Record(None, value) for value in clicks])
    return Page(spark, bootstrap_servers, schema_registry.url, topics)


# Rows of the page's chapter "What differs": columns, document, what is read here (None: the record is bad), and what
# from_json returns; as text.
_DIFFERENCES = [
    ("a INT, b INT", '{"a": "12", "b": 1}', "{12, 1}", "{null, 1}"),
    ("a INT, b INT", '{"a": 1.5, "b": 1}', "{1, 1}", "{null, 1}"),
    ("a INT, b INT", '{"a": true, "b": 1}', None, "{null, 1}"),
    ("a STRING", '{"a": 5}', None, "{5}"),
    ("a TIMESTAMP", '{"a": 1767225600}', "{1970-01-01 00:29:27.2256}", "{2026-01-01 00:00:00}"),
    ("a DECIMAL(9,2)", '{"a": 1.239}', "{1.23}", "{1.24}"),
    ("a DOUBLE", '{"a": NaN}', None, "{NaN}"),
    ("a INT", '{"a": 1', None, "{null}"),
]


@pytest.mark.parametrize(("columns", "document", "ours", "theirs"), _DIFFERENCES)
def test_difference_from_json_is_as_the_page_says(
    spark: SparkSession, columns: str, document: str, ours: str | None, theirs: str
) -> None:
    texts = spark.createDataFrame([(document,)], "value STRING")
    assert texts.select(sf.from_json("value", columns).cast("string")).collect() == [(theirs,)]
    decoded = decode(pa.array([document]), "json", schema=columns, on_bad="null")
    rows = spark.createDataFrame(pa.table({"value": decoded.column}))
    assert rows.selectExpr("CAST(value AS STRING)").collect() == [(ours,)]
    assert len(decoded.bad) == (ours is None)


def headers_of(record: Record) -> dict[str, bytes | None]:
    return dict(record.headers or [])


def shown(printed: str) -> list[list[str]]:
    """Return the cells of the rows that `show()` printed, without the first line, which names them."""
    lines = [line for line in printed.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def test_programs_of_the_page_do_what_it_says(
    page: Page, bootstrap_servers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def letters() -> list[Record]:
        return consume_committed(bootstrap_servers, page.topics["orders-dead-letters"])

    assert [len(program.replace("\n\n", "\n").splitlines()) for program in page.programs[:2]] == [5, 4]
    page.run("value.*")
    assert shown(capsys.readouterr().out) == [["1", "Ada", "250", "DE"], ["2", "Bo", "975", "SE"], ["NULL"] * 4]
    page.run("dead_letters(records")
    bad, unknown = letters()
    assert (bad.key, bad.value) == (b"k1", b"not Avro")
    found = headers_of(bad)
    assert [found[f"__connect.errors.{name}"] for name in ("topic", "partition", "offset", "stage")] == [
        page.topics["orders"].encode(), b"0", b"1", b"VALUE_CONVERTER",
    ]  # fmt: skip
    assert headers_of(bad)["origin"] == b"here"
    assert headers_of(unknown)["__connect.errors.exception.class.name"] == b"SCHEMA_ID_NOT_FOUND"

    page.run("includeSchemaId")
    assert sorted(shown(capsys.readouterr().out)) == [["1", "1"], ["1000", "1"], ["2", "1"], ["NULL", "2"]]
    page.run('valueFormat", "json"')
    assert sorted(shown(capsys.readouterr().out)) == [["/", "2"], ["/help", "1"]]

    page.run("with_dead_letters")
    eventually(lambda: len(letters()) == 4)
    eventually(lambda: len(consume_committed(bootstrap_servers, page.topics["orders-json"])) == 3)
    once = consume_committed(bootstrap_servers, page.topics["orders-json"])
    assert [json.loads(record.value) if record.value else None for record in once] == [
        {"id": 1, "customer": "Ada", "cents": 250, "country": "DE"},
        {"id": 2, "customer": "Bo", "cents": 975, "country": "SE"},
        None,
    ]

    page.run("orders.write")
    typed = consume_committed(bootstrap_servers, page.topics["orders-typed"])
    assert [record.key for record in typed] == [b"k0", b"k2", b"k3"]
    assert typed[0].value == written(2, _NEWER, id=1, customer="Ada", cents=250, country="DE")
    capsys.readouterr()
    page.run("few.")
    assert shown(capsys.readouterr().out) == [["1225"]]

    page.run("import decode, encode")
    (printed,) = re.findall(r"```text\n(.*?)```", _DOC.read_text(), re.DOTALL)
    assert capsys.readouterr().out == printed
    assert page.count == len(page.programs)
