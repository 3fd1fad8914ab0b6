from __future__ import annotations

import json
from pathlib import Path

import pytest

from kit.checkpoint_files import write_checkpoint
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._ops.operations.checkpoints.differences import (
    CheckpointDifference,
    PositionDifference,
    compare_checkpoints,
)
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import read_checkpoint
from pyspark_kafka.checkpoint.topic_ids import TopicIdentities

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
ENDS = [{"t": {"0": 5}}, {"t": {"0": 9}}]


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    return write_checkpoint(tmp_path / "a", ENDS), write_checkpoint(tmp_path / "b", ENDS)


def compared(places: tuple[Path, Path]) -> CheckpointDifference:
    first, second = places
    return compare_checkpoints(read_checkpoint(str(first)), read_checkpoint(str(second)))


def test_copy_differs_in_nothing(places: tuple[Path, Path]) -> None:
    found = compared(places)
    assert found.are_same
    assert found.verdict == "Both are at the same positions."


def test_blanks_of_the_other_connector_are_no_difference(places: tuple[Path, Path]) -> None:
    path = places[1] / "offsets" / "1"
    path.write_text(path.read_text().replace(": ", ":"))
    assert compared(places).are_same


def test_backup_is_behind(places: tuple[Path, Path]) -> None:
    write_checkpoint(places[0], [*ENDS, {"t": {"0": 12, "1": 4}}])
    found = compared(places)
    assert found.positions == (PositionDifference("0", P0, 12, 9), PositionDifference("0", P1, 4, None))
    assert found.verdict == (
        "The first one is ahead in 1 partition, by 3 offsets; only one has a position in 1 partition."
    )
    assert found.sentences == (
        "The last one that has begun is batch 2 in the first, batch 1 in the second.",
        "The last one that has finished is batch 2 in the first, batch 1 in the second.",
    )


def test_checkpoints_that_went_different_ways_are_said_to_have(places: tuple[Path, Path]) -> None:
    write_checkpoint(places[1], [ENDS[0], {"t": {"0": 7}}])
    found = compared(places)
    assert found.sentences == (
        "Batches that end at other offsets in the one than in the other: 1. The checkpoints have gone different ways.",
    )
    assert found.positions == (PositionDifference("0", P0, 9, 7),)


def test_other_query_topics_and_states_are_named(places: tuple[Path, Path]) -> None:
    first, second = places
    (second / "metadata").write_text(json.dumps({"id": "00000000-0000-0000-0000-000000000001"}))
    (first / "sources" / "0" / "topic-ids").write_bytes(TopicIdentities({"t": "1"}).to_bytes())
    (second / "sources" / "0" / "topic-ids").write_bytes(TopicIdentities({"t": "2"}).to_bytes())
    (second / "state" / "0" / "0").mkdir(parents=True)
    found = compared(places)
    assert [sentence.split()[0:3] for sentence in found.sentences] == [
        ["They", "are", "of"],
        ["The", "ids", "of"],
        ["Their", "stateful", "operators"],
    ]


def test_damaged_files_are_problems(places: tuple[Path, Path]) -> None:
    (places[1] / "offsets" / "1").write_bytes(b"")
    found = compared(places)
    assert found.are_same is None
    assert found.positions is None
    assert found.verdict == "The positions could not be compared."
    assert len(found.problems) == 1


def test_difference_beside_a_damaged_file_is_one(places: tuple[Path, Path]) -> None:
    write_checkpoint(places[1], ENDS[:1])
    (places[1] / "commits" / "1").unlink()
    (places[1] / "offsets" / "1").write_bytes(b"")
    found = compared(places)
    assert found.are_same is False
    assert found.problems


def test_id_that_cannot_be_read_is_not_that_of_another_query(places: tuple[Path, Path]) -> None:
    (places[1] / "metadata").write_bytes(b"{")
    found = compared(places)
    assert (found.sentences, found.positions, found.are_same) == ((), (), None)
    assert "metadata of checkpoint" in found.problems[0]
    (places[1] / "metadata").unlink()
    assert [sentence.split()[0:3] for sentence in compared(places).sentences] == [["They", "are", "of"]]
