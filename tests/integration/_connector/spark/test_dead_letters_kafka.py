"""Dead letters on a real broker: written beside good rows exactly once over a kill, and sent back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import pyspark_kafka
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, await_committed, consume, consume_committed, produce
from kit.waiting import eventually

_PREFIX = "__connect.errors."
TYPED = {"valueFormat": "json", "valueSchema": "id BIGINT", "mode": "PERMISSIVE", "includeHeaders": "true"}


def is_bad(number: int) -> bool:
    return number % 7 == 0


def orders(count: int) -> list[Record]:
    """Return records of which every seventh cannot be read."""
    return [
        Record(b"k%d" % n, b"{bad %d" % n if is_bad(n) else b'{"id":%d}' % n, 0, 1_000 + n, [("n", b"%d" % n)])
        for n in range(count)
    ]


def copy_orders(spark: SparkSession, servers: str, source: str, copy: str, dead: str, checkpoint: str) -> Any:
    """Return the writer of a query that copies a topic in small micro-batches, exactly once."""
    reader = spark.readStream.format("pyspark_kafka").options(**TYPED).option("kafka.bootstrap.servers", servers)
    records = reader.options(subscribe=source, startingOffsets="earliest", maxOffsetsPerTrigger="5").load()
    good = [f"'{copy}' AS topic", "key", "to_json(value) AS value"]
    rows = pyspark_kafka.with_dead_letters(records, good, topic=dead)
    writer = rows.writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
    return writer.options(deliveryGuarantee="exactly_once", checkpointLocation=checkpoint)


_KILLED = """
import sys
from pyspark.sql import SparkSession
sys.path[:0] = sys.argv[1:3]
from test_dead_letters_kafka import copy_orders
spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
         .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate())
copy_orders(spark, *sys.argv[3:]).start().awaitTermination()
"""


@pytest.mark.full("Kills at every point")
def test_good_rows_and_dead_letters_are_written_exactly_once_over_a_kill(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path, request: Any
) -> None:
    source, copy, dead = make_topic(), make_topic(), make_topic(partitions=2)
    produce(bootstrap_servers, source, orders(100))
    place = tmp_path / "checkpoint"
    arguments = (bootstrap_servers, source, copy, dead, str(place))
    program = tmp_path / "killed.py"
    program.write_text(_KILLED)
    tests = request.config.rootpath / "tests"
    with (tmp_path / "log").open("wb") as log:
        driver = subprocess.Popen(
            [sys.executable, str(program), str(tests), str(request.path.parent), *arguments],
            stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
        try:
            eventually((place / "commits" / "3").exists, timeout_s=400)
        finally:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
    assert not (place / "commits" / "19").exists(), "the query was done before it was killed"
    query = copy_orders(spark, *arguments).trigger(availableNow=True).start()
    query.awaitTermination()
    sent = dict(enumerate(orders(100)))
    await_committed(bootstrap_servers, copy, [b'{"id":%d}' % n for n in sent if not is_bad(n)])
    await_committed(bootstrap_servers, dead, [r.value or b"" for n, r in sent.items() if is_bad(n)])
    letters = sorted(
        consume_committed(bootstrap_servers, dead), key=lambda each: int(dict(each.headers or [])["n"] or b"")
    )
    assert [(each.key, each.value) for each in letters] == [(r.key, r.value) for n, r in sent.items() if is_bad(n)]
    *headers, (name, message) = letters[1].headers or []
    assert (name, bool(message)) == (_PREFIX + "exception.message", True)
    assert headers == [
        ("n", b"7"),
        (_PREFIX + "topic", source.encode()),
        (_PREFIX + "partition", b"0"),
        (_PREFIX + "offset", b"7"),
        (_PREFIX + "timestamp", b"1007"),
        (_PREFIX + "stage", b"VALUE_CONVERTER"),
        (_PREFIX + "class.name", b"pyspark_kafka"),
        (_PREFIX + "exception.class.name", b"DECODE_FAILED"),
    ]


def test_dead_letters_are_sent_back_to_the_topics_and_partitions_that_they_came_from(
    either_session: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    first, second, dead = make_topic(partitions=3), make_topic(partitions=3), make_topic()
    servers = {"kafka.bootstrap.servers": bootstrap_servers}
    sent = [Record(b"k", b"{bad %d" % n, n % 3, headers=[("n", b"%d" % n)]) for n in range(6)]
    for topic in (first, second):
        produce(bootstrap_servers, topic, sent)
    read = either_session.read.format("pyspark_kafka").options(**servers, **TYPED)
    letters = pyspark_kafka.dead_letters(read.option("subscribe", f"{first},{second}").load(), topic=dead)
    letters.write.format("pyspark_kafka").options(**servers).mode("append").save()
    assert len(consume(bootstrap_servers, dead, 12)) == 12
    # As a stream, and only those of one topic.
    stream = either_session.readStream.format("pyspark_kafka").options(**servers, includeHeaders="true", subscribe=dead)
    back = pyspark_kafka.redrive(stream.option("startingOffsets", "earliest").load(), keep_partition=True)
    writer = back.where(f"topic = '{second}'").writeStream.format("pyspark_kafka").options(**servers)
    query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    query.awaitTermination()
    consume(bootstrap_servers, first, 6)
    found = sorted(consume(bootstrap_servers, second, 12), key=lambda each: (each.partition, each.offset))
    again = [(each.partition, each.key, each.value, each.headers) for each in found]
    # In each partition what was there, and then the same once more.
    for partition in range(3):
        mine = [each for each in again if each[0] == partition]
        assert mine[:2] == [(partition, r.key, r.value, r.headers) for r in sent if r.partition == partition]
        assert mine[2:] == mine[:2]


def test_a_foreign_record_in_the_topic_of_dead_letters_is_not_sent(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    target, dead = make_topic(), make_topic()
    produce(bootstrap_servers, dead, [Record(b"k", b"v", headers=[("own", b"1")])])
    servers = {"kafka.bootstrap.servers": bootstrap_servers}
    read = spark.read.format("pyspark_kafka").options(**servers, includeHeaders="true", subscribe=dead).load()
    writer = pyspark_kafka.redrive(read).write.format("pyspark_kafka").options(**servers).mode("append")
    with pytest.raises(Exception, match="DEAD_LETTER_ORIGIN_UNKNOWN") as caught:
        writer.save()
    assert f"The dead letter {dead}-0 at offset 0 cannot be sent back: it has no header" in str(caught.value)
    consume(bootstrap_servers, target, 0)
    (left,) = pyspark_kafka.redrive(read, unknown="only").collect()
    assert (left["offset"], bytes(left["value"])) == (0, b"v")
