"""The options of docs/guides/managed-kafka.md on a broker with the mechanisms of the page."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kit.pages import GuidePage
from kit.programs.cli import invoke
from pyspark_kafka.testing import EmbeddedKafka, Listener

_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_PASSWORD = "Endpoint=sb://first/;SharedAccessKey=a+b/c="  # noqa: S105 - of a broker that ends with the test


@pytest.mark.full("Programs of the pages")
def test_options_of_each_provider_log_in_write_and_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    secret = tmp_path / "password"
    secret.write_text(_PASSWORD)
    page = GuidePage("managed-kafka", spark, {})
    presets = re.findall(r"^```python\n(kafka = .*?)^```$", page.text, re.MULTILINE | re.DOTALL)
    assert len(presets) == 4
    first_rows = page.program("prepare()").partition("getOrCreate()\n")[2]
    listener = Listener("SASL_SSL", mechanisms=_MECHANISMS)
    with EmbeddedKafka(listeners=[listener], users={"spark": _PASSWORD}) as broker:
        own = broker.client_options("SASL_SSL", "spark")
        for number, preset in enumerate(presets):
            topic = f"orders-{number}"
            broker.create_topic(topic)
            kafka = ast.literal_eval(preset.partition("kafka = ")[2])
            assert "kafka.ssl.truststore.location" not in kafka
            # The processes of Spark are started already, so a file takes the place of the variable.
            login = kafka["kafka.sasl.jaas.config"].replace("env:KAFKA_PASSWORD", f"file:{secret}")
            # A broker has no user of PLAIN whose name has other characters than letters: `$ConnectionString`.
            kafka["kafka.sasl.jaas.config"] = re.sub(r'username="[^"]*"', 'username="spark"', login)
            kafka["kafka.bootstrap.servers"] = own["kafka.bootstrap.servers"]
            kafka |= {name: value for name, value in own.items() if name.startswith("kafka.ssl.")}
            page.names["kafka"] = kafka
            page.replaced = {'"orders"': f'"{topic}"'}
            page.run("json.dumps")
            page.replaced = {}
            exec(first_rows.replace('"orders"', f'"{topic}"'), page.names)  # noqa: S102 - our own page
            assert "|  b|banana|" in capsys.readouterr().out, preset
            checked = invoke("check", "--options", "kafka.json", "--json")
            assert checked.exit_code == 0, checked.output
            assert json.loads(checked.stdout)
