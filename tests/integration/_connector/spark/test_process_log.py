"""What the Python processes that Spark starts write to standard error, among the lines of Spark itself."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kit.administration import delete_records
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.programs.run import run_logging_program
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.options import ConnectionOptions

pytestmark = pytest.mark.full("Drivers of their own")

_PROGRAM = """
import json, sys
from pyspark.sql import SparkSession

servers, topic, copy, checkpoint = sys.argv[1:]
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
options = {
    "kafka.bootstrap.servers": servers, "subscribe": topic, "failOnDataLoss": "false", "maxTriggerDelay": "5m",
    "startingOffsets": json.dumps({topic: {"0": 2}}), "maxOffsetsPerTrigger": "4",
}
rows = spark.readStream.format("pyspark_kafka").options(**options).load()
writer = rows.select("value").writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
writer = writer.option("topic", copy).option("checkpointLocation", checkpoint).option("kafka.linger.ms", "5")
query = writer.trigger(availableNow=True).start()
query.awaitTermination()
print(json.dumps({"query": str(query.id), "run": str(query.runId)}))
options = {"endingOffsets": json.dumps({topic: {"0": 99}}), "kafka.bootstrap.servers": servers, "subscribe": topic}
print(spark.read.format("pyspark_kafka").options(failOnDataLoss="false", **options).load().count())
"""

_LINE = re.compile(r"(\d\d/\d\d/\d\d \d\d:\d\d:\d\d) ([A-Z]+) (pyspark_kafka[.\w]*): (?:\[(.*?)\] )?([A-Z].*)")


def test_warnings_have_the_form_of_sparks_lines_and_say_which_query(
    bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic, copy = make_topic(), make_topic()
    produce(bootstrap_servers, topic, [Record(b"k", b"v%d" % i) for i in range(10)])
    host, port = bootstrap_servers.split(":")
    with KafkaClient(ConnectionOptions(((host, int(port)),))) as client:
        delete_records(client, {TopicPartition(topic, 0): 5})
    said, log = run_logging_program(
        _PROGRAM, bootstrap_servers, topic, copy, str(tmp_path / "checkpoint"), place=tmp_path
    )
    ids = json.loads(said.splitlines()[0])
    assert said.splitlines()[1] == "5"
    # Spark's own, and ours, have the same form.
    assert re.search(r"^\d\d/\d\d/\d\d \d\d:\d\d:\d\d WARN \w+: ", log, re.MULTILINE)
    ours = [line for line in log.splitlines() if "failOnDataLoss" in line or "has no effect" in line]
    found = [_LINE.fullmatch(line) for line in ours]
    assert ours
    assert None not in found, ours
    lost = [match for match in found if match and "Offsets [2, " in match[5]]
    assert [(match[2], match[3]) for match in lost] == [
        ("WARN", "pyspark_kafka._connector.source.executor.range_decoder")
    ]
    assert re.fullmatch(rf"queryId={ids['query']} runId={ids['run']} batchId=0 stage=\d+ TID=\d+", lost[0][4])
    # On the driver: the line names the topic, and is written once, though Spark builds several readers.
    noted = [match for match in found if match and "'maxTriggerDelay' has no effect" in match[5]]
    assert [match[4] for match in noted] == [f"planning a streaming read of Subscribe[{topic}]"]
    batch = [match for match in found if match and ", 99) " in match[5]]
    assert batch
    for match in batch:
        assert re.fullmatch(r"stage=\d+ TID=\d+|planning a batch read of .*", match[4])
