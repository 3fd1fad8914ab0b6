"""The settings of Spark that docs/performance.md advises: Spark knows them, a session with them reads and writes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kit.fixtures.broker import TopicMaker
from kit.pointers import REPO
from kit.programs.run import run_program

pytestmark = pytest.mark.full("Programs of the pages")

_ROUND_TRIP = """
import json
import sys

servers, topic = sys.argv[1:]
kafka = {"kafka.bootstrap.servers": servers, "valueFormat": "json"}
rows = spark.range(0, 25_000, 1, 1).selectExpr("named_struct('id', id, 'text', repeat('x', 100)) AS value")
rows.write.format("pyspark_kafka").options(**kafka, topic=topic).mode("append").save()
read = spark.read.format("pyspark_kafka").options(**kafka, subscribe=topic, valueSchema="id BIGINT, text STRING").load()
total = read.selectExpr("count(*)", "sum(value.id)", "max(length(value.text))").first()


def sizes(batches):
    import pyarrow as pa

    for batch in batches:
        yield pa.RecordBatch.from_pydict({"rows": [batch.num_rows]})


def most_rows():
    return max(row.rows for row in rows.mapInArrow(sizes, "rows BIGINT").collect())


found = {"total": list(total), "rows": [most_rows()]}
spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "500")
found["rows"].append(most_rows())
spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", "10000")
found["rows"].append(most_rows())
found["java"] = {
    name: spark._jvm.java.lang.System.getProperty(f"arrow.{name}")
    for name in ("enable_unsafe_memory_access", "enable_null_check_for_get")
}
found["socket"] = spark.conf.get("spark.python.unix.domain.socket.enabled")
print(json.dumps(found))
spark.stop()
"""


def test_session_with_the_advised_settings_reads_and_writes(
    bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    chapter = (REPO / "docs/performance.md").read_text().partition("\n## Settings of Spark\n")[2].partition("\n## ")[0]
    (block,) = re.findall(r"```python\n(.*?)```", chapter, re.DOTALL)
    local = 'SparkSession.builder.master("local[2]")'
    assert block.count("SparkSession.builder.") == 1
    program = block.replace("SparkSession.builder", local) + _ROUND_TRIP
    found = json.loads(run_program(program, bootstrap_servers, make_topic(), place=tmp_path))
    assert found["total"] == [25_000, 25_000 * 24_999 // 2, 100]
    # As many rows as they may be, whatever their size; with a limit of bytes fewer.
    assert found["rows"][:2] == [10_000, 500]
    assert found["rows"][2] < 500
    assert found["java"] == {"enable_unsafe_memory_access": "true", "enable_null_check_for_get": "false"}
    assert found["socket"] == "true"
