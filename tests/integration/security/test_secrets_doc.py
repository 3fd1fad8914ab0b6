"""The example of docs/secrets.md as it stands, with the password where the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kit.independent_client import Record, produce
from kit.programs.run import run_logging_program
from kit.texts import said
from pyspark_kafka.testing import EmbeddedKafka, Listener

# A real broker, though not the shared one that the fixtures' marker is derived from.
pytestmark = [pytest.mark.full("Programs of the pages"), pytest.mark.spark]

PAGE = (Path(__file__).parents[3] / "docs" / "secrets.md").read_text()
SESSION = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
"""
WITHOUT = """
try:
    exec(EXAMPLE)
except Exception as error:
    print(str(error))
"""


def test_example_runs_where_the_variable_is_set_and_says_where_it_is_not(tmp_path: Path) -> None:
    example = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
    listener = Listener("SASL_PLAINTEXT", mechanisms=("SCRAM-SHA-512",))
    with EmbeddedKafka(listeners=[listener], users={"ann": "correct-horse"}) as kafka:
        kafka.create_topic("orders")
        produce(kafka.bootstrap_servers, "orders", [Record(b"k", b"v")] * 3)
        own = example.replace("localhost:9092", kafka.address("SASL_PLAINTEXT"))
        password: dict[str, str | None] = {"KAFKA_PASSWORD": "correct-horse"}
        shown, log = run_logging_program(SESSION + own, place=tmp_path, environment=password)
        assert shown == "3 records\n"
        assert "correct-horse" not in log
        absent: dict[str, str | None] = {"KAFKA_PASSWORD": None}
        program = f"EXAMPLE = {own!r}\n{SESSION}{WITHOUT}"
        shown = run_logging_program(program, place=tmp_path, environment=absent)[0]
    (error,) = re.findall(r"\[SECRET_UNAVAILABLE\].*", shown)[:1]
    assert "'env:KAFKA_PASSWORD' of option 'kafka.sasl.jaas.config' is not available on the driver (" in error
    assert said(error).endswith(
        "Set KAFKA_PASSWORD where the driver is started, and spark.executorEnv.KAFKA_PASSWORD for executors."
    )
