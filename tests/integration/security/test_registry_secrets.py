"""The login of a schema registry in a query: it works in tasks, and no text of a plan or of an error shows it."""

from __future__ import annotations

import base64
import contextlib
import io
from pathlib import Path

import fastavro
import pytest
from pyspark.sql import DataFrame, SparkSession

from kit.canaries import Canary, hits
from kit.fakes.schema_registry import RegistryAnswer, SchemaRegistryServer
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce

SCHEMA = '{"type":"record","name":"A","fields":[{"name":"x","type":"long"}]}'


def framed(number: int, schema_id: int) -> bytes:
    """Return a value of the schema behind its id."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, {"type": "long"}, number)
    return b"\0" + schema_id.to_bytes(4, "big") + out.getvalue()


def texts_of(frame: DataFrame) -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        for mode in ("simple", "extended", "formatted", "cost", "codegen"):
            frame.explain(mode)
    return f"{said.getvalue()}\n{frame!r}"


@pytest.mark.parametrize("is_reference", [True, False])
def test_login_of_a_registry_is_used_and_not_shown(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path, is_reference: bool
) -> None:
    topic = make_topic()
    canary = Canary("registry")
    login = f"me:{canary.value}"
    (tmp_path / "login").write_text(login)
    with SchemaRegistryServer(users={"me": canary.value}) as server:
        number = server.add(f"{topic}-value", SCHEMA)
        produce(bootstrap_servers, topic, [Record(None, framed(each, number)) for each in range(3)])
        options = {
            "kafka.bootstrap.servers": bootstrap_servers,
            "subscribe": topic,
            "valueFormat": "avro",
            "schema.registry.url": server.url,
            "schema.registry.basic.auth.user.info": f"file:{tmp_path / 'login'}" if is_reference else login,
            "schema.registry.timeout": "5s",
        }
        frame = spark.read.format("pyspark_kafka").options(**options).load()
        left = {"plan": texts_of(frame).encode()}
        # A registry that repeats what it was sent: to a task, as nothing is looked up before it, and to the driver.
        sent = f"{canary.value} {base64.b64encode(login.encode()).decode()}"
        server.next_answers([RegistryAnswer(401, {"error_code": 401, "message": f"who is {sent}?"})] * 40)
        given = spark.read.format("pyspark_kafka").options(**options, valueSchema=SCHEMA, valueFraming="confluent")
        in_task = given.load()
        with pytest.raises(Exception, match="REGISTRY_REFUSED") as of_task:
            in_task.collect()
        assert {each.path for each in server.requests[1:]} == {f"/schemas/ids/{number}"}
        with pytest.raises(Exception, match="REGISTRY_REFUSED") as of_driver:
            spark.read.format("pyspark_kafka").options(**options, valueSubject=f"{topic}-other").load().collect()
        for name, error in (("task", of_task.value), ("driver", of_driver.value)):
            left[name] = f"{error}\n{error!r}\n{vars(error)}".encode()
        server.next_answers([])
        assert sorted(row.value.x for row in frame.collect()) == [0, 1, 2]
    assert hits([canary], left) == []
