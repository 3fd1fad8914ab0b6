"""The program of docs/security.md that needs no cluster."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import SparkSession

from kit.pointers import REPO
from pyspark_kafka._client.client.cluster.pool import close_clients

pytestmark = pytest.mark.full("Programs of the pages")


@pytest.mark.broker
def test_program_without_a_cluster_writes_and_reads(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    section = (REPO / "docs" / "security.md").read_text().partition("## Without a cluster")[2]
    found = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert found is not None
    exec(compile(found[1], "docs/security.md", "exec"), {"spark": spark})  # noqa: S102 - our own page
    close_clients()
    assert capsys.readouterr().out == "SASL_SSL 1\n"
