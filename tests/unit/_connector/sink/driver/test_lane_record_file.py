"""The record of transactions in a checkpoint: what is written is read, and what is damaged is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._connector.sink.driver.lane_record_file import NAME, LaneRecordFile
from pyspark_kafka._connector.sink.source_positions import LaneRecord
from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.errors import CheckpointError


def test_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = LaneRecordFile(CheckpointFiles(str(tmp_path)))
    assert file.read() is None
    partitions = {TopicPartition("ä", 10): "-", TopicPartition("ä", 2): "-", TopicPartition("b", 0): "id"}
    former = {TopicPartition("ä", 2): 90, TopicPartition("ä", 10): 7}
    left = {TopicPartition("c", 1): "id-c"}
    written = LaneRecord("owner", "group", "prefix", 3, partitions, former, left)
    file.write(LaneRecord("before", "group", "prefix"))
    file.write(written)
    assert file.read() == written


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"v":2,"owner":"o","group":"g","prefix":"p","lanes":1,"topics":{}}',
        '{"v":1,"owner":"o","group":"g","prefix":"p","lanes":1}',
        '{"v":1,"owner":"o","group":"g","prefix":"p","lanes":"many","topics":{}}',
        '{"v":1,"owner":"o","group":"g","prefix":"p","lanes":1,"topics":{"t":[0]}}',
        '{"v":1,"owner":"o","group":"g","prefix":"p","lanes":Infinity,"topics":{}}',
        '{"v":1,"owner":"o","group":"g","prefix":"p","lanes":-1,"topics":{}}',
        '{"v":1,"owner":"o","group":"g","prefix":"p","lanes":1000000000000,"topics":{}}',
        "[" * 100_000,
    ],
)
def test_damaged_record_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / NAME
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(CheckpointError, match=r"continuous/transactions of checkpoint .* is malformed"):
        LaneRecordFile(CheckpointFiles(str(tmp_path))).read()
