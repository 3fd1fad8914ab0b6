"""The checkpoint of a continuous query on HDFS: one driver wins each file."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from kit.checkpoint_files import check_that_one_creator_wins
from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.continuous.epochs.epoch_files import EpochFiles
from pyspark_kafka.continuous.epochs.recovery import recover
from pyspark_kafka.errors import CheckpointError

pytestmark = pytest.mark.full("Checkpoints on stores")
pytest.importorskip("hdfs_native", reason="the extra hdfs")


@pytest.fixture
def files(hdfs: str) -> CheckpointFiles:
    return CheckpointFiles(f"{hdfs}/{uuid.uuid4().hex}")


def test_one_of_many_creators_of_a_file_wins(files: CheckpointFiles) -> None:
    files.check_decides()
    check_that_one_creator_wins(files, 4)
    assert files.scan("offsets").hidden == ()


def test_driver_that_was_replaced_does_not_write_over_the_epoch_of_its_successor(
    files: CheckpointFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    former, successor = EpochFiles(files), EpochFiles(files)
    former.take_over("former")
    former.prepare(0, '{"t":{"0":1}}', ["{}"], 0)
    former.write_commit(0)
    create = EpochFiles._create

    def take_over(epochs: EpochFiles, name: str, text: str) -> None:
        monkeypatch.setattr(EpochFiles, "_create", create)
        successor.take_over("successor")
        successor.prepare(1, '{"t":{"0":150}}', ["{}"], 0)
        successor.write_commit(1)
        create(epochs, name, text)

    monkeypatch.setattr(EpochFiles, "_create", take_over)
    with pytest.raises(CheckpointError, match=r"offsets/1 .* was written by another query"):
        former.prepare(1, '{"t":{"0":200}}', ["{}"], 0)
    assert recover(files, EpochFiles(files)).start == '{"t":{"0":150}}'
    assert files.list("continuous/messages") == []


def test_file_is_replaced_and_copied_whole(files: CheckpointFiles, tmp_path: Path) -> None:
    local = CheckpointFiles(str(tmp_path))
    for content in (b"first", b"second, and longer"):
        local.replace("state/0", content)
        assert files.copy_from(local, "state/0")
        assert files.read("state/0") == content
    files.replace("state/0", b"third")
    assert files.read("state/0") == b"third"
    status = files.status("state/0")
    assert status is not None
    assert status.size == 5
    files.delete("state/0", "state/1")
    assert files.list("state") == []
    assert files.scan().directories == ("state",)
