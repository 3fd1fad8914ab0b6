"""The programs of docs/checkpoints.md, run as they stand but for addresses and places."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from pyspark_kafka.checkpoint import CheckpointFiles

pytestmark = pytest.mark.full("Programs of the pages")

_DOC = Path(__file__).parents[4] / "docs" / "checkpoints.md"


def program_with(word: str) -> str:
    blocks: list[str] = re.findall(r"```python\n(.*?)```", _DOC.read_text(), re.DOTALL)
    return next(block for block in blocks if word in block)


def test_the_program_that_reads_a_checkpoint_shows_it(
    spark: SparkSession,
    bootstrap_servers: str,
    make_topic: TopicMaker,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic, place = make_topic(), str(tmp_path / "checkpoint")
    produce(bootstrap_servers, topic, [Record(b"k", b"v")] * 3)
    rows = spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
    rows = rows.options(subscribe=topic, startingOffsets="earliest", checkpointLocation=place)
    query = rows.load().writeStream.format("noop").option("checkpointLocation", place)
    query.trigger(availableNow=True).start().awaitTermination()
    capsys.readouterr()
    exec(program_with("InitialOffsetLog").replace("/checkpoints/orders", place), {})  # noqa: S102 - our own text
    shown = capsys.readouterr().out.splitlines()
    assert re.fullmatch(rf'0 \{{"{topic}": \{{"0": 3\}}\}} \d{{13}}', shown[0])
    assert shown[1].startswith("done: Commit(batch_id=0, ")
    assert shown[2] == f'began at: {{"{topic}":{{"0":0}}}}'


def test_the_program_with_batches_of_its_own_reads_each_record_once(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = make_topic()
    program = program_with("KafkaSource").replace("localhost:9092", bootstrap_servers).replace('"orders"', f'"{topic}"')
    program = program.replace("/checkpoints", str(tmp_path)).replace("/data", str(tmp_path))
    program = program.replace("100000", "4")
    produce(bootstrap_servers, topic, [Record(b"k", b"%d" % i) for i in range(6)])
    for _ in range(3):
        exec(program, {"spark": spark})  # noqa: S102 - our own text
    rows = spark.read.parquet(str(tmp_path / "orders")).collect()
    assert sorted(int(row.value) for row in rows) == list(range(6))
    assert (tmp_path / "job" / "sources" / "0" / "0").read_bytes() == b'\0v1\n{"%s":{"0":0}}' % topic.encode()


def test_the_sources_of_a_query_keep_their_starts_apart(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    place, topics = tmp_path / "checkpoint", [make_topic(), make_topic()]
    program = program_with('"checkpointLocation", "/checkpoints/orders"').replace("localhost:9092", bootstrap_servers)
    streams = []
    for index, topic in enumerate(topics):
        text = program.replace('"orders"', f'"{topic}"').replace("/checkpoints/orders", str(place))
        names = {"spark": spark}
        exec(text.replace(".load()", f'.option("sourceIndex", "{index}").load()'), names)  # noqa: S102 - our own text
        streams.append(names["orders"])
    writer = streams[0].union(streams[1]).writeStream.format("noop").option("checkpointLocation", str(place))  # type: ignore[attr-defined]
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    assert query.lastProgress is not None
    for index, (topic, progress) in enumerate(zip(topics, query.lastProgress.sources, strict=True)):
        assert topic in progress.endOffset
        assert (place / "sources" / str(index) / "0").read_bytes() == b'\0v1\n{"%s":{"0":0}}' % topic.encode()


def test_initial_offsets_are_not_read_after_batch_0_and_damaged_ids_stop_the_query(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic, place = make_topic(), tmp_path / "checkpoint"

    def run() -> int:
        produce(bootstrap_servers, topic, [Record(b"k", b"v")] * 3)
        rows = spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
        rows = rows.options(subscribe=topic, startingOffsets="earliest", checkpointLocation=str(place))
        query = rows.load().writeStream.format("noop").option("checkpointLocation", str(place))
        started = query.trigger(availableNow=True).start()
        started.awaitTermination()
        return sum(progress.numInputRows for progress in started.recentProgress)

    assert run() == 3
    CheckpointFiles(str(place)).replace("sources/0/0", b"\0v1")
    assert run() == 3
    ids = CheckpointFiles(str(place)).read("sources/0/topic-ids")
    assert ids is not None
    CheckpointFiles(str(place)).replace("sources/0/topic-ids", ids[:25])
    with pytest.raises(Exception, match="CHECKPOINT_TOPIC_IDS_INVALID") as caught:
        run()
    assert f"file sources/0/topic-ids of checkpoint {place}: it is damaged: " in str(caught.value)
    CheckpointFiles(str(place)).replace("sources/0/topic-ids", ids)
    # What the failed run did not read as well.
    assert run() == 6
