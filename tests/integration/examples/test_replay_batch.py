"""The example that replays a batch, run on the checkpoint of a real query."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from pyspark_kafka.checkpoint import CheckpointFiles, InitialOffsetLog, KafkaSourceOffset

pytestmark = pytest.mark.full("Examples")

_EXAMPLE = Path(__file__).parents[3] / "examples" / "replay_batch.py"


class Replay:
    """A finished query of three batches, and the example on its checkpoint."""

    def __init__(self, spark: SparkSession, bootstrap_servers: str, topic: str, place: Path) -> None:
        self.topic = topic
        self.checkpoint = place / "checkpoint"
        self._spark = spark
        self._servers = bootstrap_servers
        self._place = place
        produce(bootstrap_servers, topic, [Record(b"k", b"%d" % i) for i in range(10)])

    def run_query(self, **options: Any) -> None:
        """Run the query to its end, 4 records a batch, from offset 1."""
        start = KafkaSourceOffset.from_dict({self.topic: {"0": 1}}).json()
        rows = self._spark.readStream.format("pyspark_kafka").options(
            **{"kafka.bootstrap.servers": self._servers}, subscribe=self.topic, startingOffsets=start,
            maxOffsetsPerTrigger=4, **options,
        )  # fmt: skip
        query = rows.load().writeStream.format("noop").option("checkpointLocation", str(self.checkpoint))
        query.trigger(availableNow=True).start().awaitTermination()

    def __call__(self, batch: int, *arguments: str) -> None:
        """Run the example, in this session."""
        given = ["-o", f"kafka.bootstrap.servers={self._servers}", *arguments]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", [str(_EXAMPLE), str(self.checkpoint), str(batch), *given])
            # Other tests go on with it.
            patch.setattr(type(self._spark), "stop", lambda _: None)
            runpy.run_path(str(_EXAMPLE), run_name="__main__")

    def refused(self, batch: int) -> str:
        """Run the example, and return how it ends."""
        with pytest.raises(SystemExit) as ended:
            self(batch)
        return str(ended.value)

    def folder(self, name: str) -> str:
        """Return a place to write to."""
        return str(self._place / name)

    def values(self, folder: str) -> list[int]:
        """Return what the example wrote."""
        return sorted(int(row.value) for row in self._spark.read.parquet(self.folder(folder)).collect())


@pytest.fixture
def replay(spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path) -> Replay:
    return Replay(spark, bootstrap_servers, make_topic(), tmp_path)


def test_a_batch_is_read_again_as_it_was(replay: Replay, capsys: pytest.CaptureFixture[str]) -> None:
    replay.run_query()
    replay(1, "--to", replay.folder("again"))
    said = capsys.readouterr().out
    start, end = (KafkaSourceOffset.from_dict({replay.topic: {"0": each}}).json() for each in (5, 9))
    assert f"batch 1: {start} to {end}, 4 records\n" in said
    assert replay.values("again") == [5, 6, 7, 8]


def test_the_first_batch_begins_where_the_checkpoint_says_or_the_user(replay: Replay) -> None:
    replay.run_query()
    assert f"{replay.checkpoint} does not hold where batch 0 began. Name it: --start JSON" in replay.refused(0)
    InitialOffsetLog(CheckpointFiles(str(replay.checkpoint))).get_or_create(
        lambda: KafkaSourceOffset.from_dict({replay.topic: {"0": 1}})
    )
    replay(0, "--to", replay.folder("again"))
    assert replay.values("again") == [1, 2, 3, 4]


def test_a_batch_that_the_checkpoint_does_not_have_is_named(replay: Replay) -> None:
    replay.run_query()
    assert f"{replay.checkpoint} has no offsets of batch 7; it has the batches [0, 1, 2]." in replay.refused(7)


def test_the_start_can_be_given_where_the_checkpoint_has_it_no_more(
    replay: Replay, capsys: pytest.CaptureFixture[str]
) -> None:
    replay.run_query()
    (replay.checkpoint / "offsets" / "1").unlink()
    assert "no longer has batch 1, whose end is the start" in replay.refused(2)
    start = KafkaSourceOffset.from_dict({replay.topic: {"0": 9}}).json()
    replay(2, "--start", start)
    said = capsys.readouterr().out
    assert "1 records\n" in said
    # Without --to, they are shown.
    assert "|value|" in said
