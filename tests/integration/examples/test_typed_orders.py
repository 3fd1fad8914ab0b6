"""The example that reads and writes Avro with a schema registry, run twice on real topics."""

from __future__ import annotations

import io
import json
import runpy
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession

from kit.fakes.schema_registry import SchemaRegistryServer
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, consume_committed, produce

pytestmark = pytest.mark.full("Examples")

_EXAMPLE = Path(__file__).parents[3] / "examples" / "typed_orders.py"
_NOON = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
_ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "country", "type": "string"},
        {"name": "cents", "type": "long"},
        {"name": "time", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}


class Shop:
    """Topics of the example, and the example itself."""

    def __init__(
        self, spark: SparkSession, servers: str, make_topic: TopicMaker, registry: SchemaRegistryServer, place: Path
    ) -> None:
        self.orders, self.revenue, self.dead = make_topic(partitions=2), make_topic(), make_topic()
        self.registry = registry
        self._spark, self._servers, self._place = spark, servers, place
        self._schema_id = registry.add(f"{self.orders}-value", json.dumps(_ORDER))

    def sell(self, country: str, cents: int, minute: int) -> None:
        """Write an order, as a serializer of Confluent does."""
        out = io.BytesIO()
        order = {"id": 1, "country": country, "cents": cents, "time": _NOON + timedelta(minutes=minute)}
        fastavro.schemaless_writer(out, _ORDER, order)
        self.write(b"\0" + self._schema_id.to_bytes(4, "big") + out.getvalue())

    def write(self, value: bytes) -> None:
        produce(self._servers, self.orders, [Record(b"k", value)])

    def run(self) -> None:
        """Run the example, in this session."""
        arguments = [self._servers, self.registry.url, str(self._place)]
        topics = {"orders": self.orders, "revenue": self.revenue, "dead-letters": self.dead}
        named = [part for name, topic in topics.items() for part in (f"--{name}", topic)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", [str(_EXAMPLE), *arguments, *named])
            # Other tests use it after this one.
            patch.setattr(type(self._spark), "stop", lambda _: None)
            runpy.run_path(str(_EXAMPLE), run_name="__main__")

    def sums(self) -> list[tuple[Any, ...]]:
        """Return what is in the topic of sums, read by another library."""
        (schema_id,) = self.registry.versions(f"{self.revenue}-value")
        schema = runpy.run_path(str(_EXAMPLE))["REVENUE"]
        found = []
        for record in consume_committed(self._servers, self.revenue):
            assert record.value is not None
            assert record.value[:5] == b"\0" + schema_id.to_bytes(4, "big")
            row: Any = fastavro.schemaless_reader(io.BytesIO(record.value[5:]), schema, None)
            assert record.key == row["country"].encode()
            found.append((row["country"], row["start"].minute, row["orders"], row["cents"]))
        return sorted(found)


@pytest.fixture
def shop(
    spark: SparkSession,
    bootstrap_servers: str,
    make_topic: TopicMaker,
    schema_registry: SchemaRegistryServer,
    tmp_path: Path,
) -> Shop:
    return Shop(spark, bootstrap_servers, make_topic, schema_registry, tmp_path)


def test_sums_are_typed_and_what_cannot_be_read_is_a_dead_letter(shop: Shop, bootstrap_servers: str) -> None:
    shop.sell("DE", 100, 1)
    shop.write(b"no Avro")
    shop.sell("DE", 50, 9)
    shop.sell("SE", 70, 2)
    # Closes the windows before it.
    shop.sell("SE", 1, 60)
    shop.run()
    assert shop.sums() == [("DE", 0, 2, 150), ("SE", 0, 1, 70)]
    (letter,) = consume_committed(bootstrap_servers, shop.dead)
    assert letter.value == b"no Avro"
    headers = dict(letter.headers or [])
    assert headers["__connect.errors.topic"] == shop.orders.encode()
    assert headers["__connect.errors.exception.class.name"] == b"INVALID_MAGIC_BYTE"


def test_example_continues_where_it_ended(shop: Shop, bootstrap_servers: str) -> None:
    shop.sell("DE", 100, 1)
    shop.sell("DE", 1, 30)
    shop.run()
    shop.write(b"no Avro")
    shop.sell("DE", 1, 60)
    shop.run()
    assert shop.sums() == [("DE", 0, 1, 100), ("DE", 30, 1, 1)]
    assert len(consume_committed(bootstrap_servers, shop.dead)) == 1
