"""Versions of states that a checkpoint, or the positions of its group, names and that are not there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kit.checkpoint_files import write_checkpoint
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.transactions.group_positions import GroupPosition
from pyspark_kafka._connector.sink.source_positions import LaneRecord, PositionNote
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import read_checkpoint
from pyspark_kafka._ops.operations.checkpoints.state_chains import StateChains
from pyspark_kafka._ops.operations.checkpoints.verify.cluster_snapshot import ClusterSnapshot
from pyspark_kafka._ops.operations.checkpoints.verify.expectation import Expectation
from pyspark_kafka._ops.operations.checkpoints.verify.file_judge import FileJudge
from pyspark_kafka._ops.operations.checkpoints.verify.findings import Findings
from pyspark_kafka._ops.operations.checkpoints.verify.state_checks import check_states_of_epoch, check_states_of_group
from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.checkpoint.continuous_files import VERSIONS
from pyspark_kafka.checkpoint.state_files import encoded_changes
from pyspark_kafka.checkpoint.state_names import CommittedHeads
from pyspark_kafka.errors import StateError

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
LANES = LaneRecord("start", "group", "prefix", 2, {P0: "-", P1: "-"})
POSITION = {P0: 9, P1: 9}


@pytest.fixture
def judge(tmp_path: Path) -> FileJudge:
    """Epochs 0 and 1 are finished; the versions of epoch 1 are there."""
    write_checkpoint(tmp_path, [{"t": {"0": 5, "1": 9}}, {"t": {"0": 9, "1": 9}}])
    files = CheckpointFiles(str(tmp_path))
    heads = {"0/t-0": "1-ab.1", "0/t-1": "0-ab.1"}
    files.replace(f"{VERSIONS}/1", json.dumps({"v": 1, "schemas": ["n int64"], "heads": heads}).encode())
    for name, before in (("t-0/0-ab", ""), ("t-0/1-ab", "0-ab.1"), ("t-1/0-ab", "")):
        files.replace(f"continuous/state/0/{name}.0.delta", encoded_changes([(b"k", b"v")], {"previous": before}))
    return FileJudge(read_checkpoint(str(tmp_path)), Findings(), str)


def told(judge: FileJudge) -> list[tuple[str, str, str]]:
    return [(each.code, each.where, each.text) for each in judge.findings]


def check_group(judge: FileJudge, **positions: tuple[int, str, str]) -> None:
    """Look at positions of partitions of t: offset, epoch, state."""
    group = {
        TopicPartition("t", int(name[1:])): GroupPosition(offset, PositionNote("q", "-", epoch, state).text())
        for name, (offset, epoch, state) in positions.items()
    }
    check_states_of_group(judge, Expectation("q", POSITION, POSITION, None, lanes=LANES), ClusterSnapshot(group=group))


def heads(*texts: str | None) -> str:
    return CommittedHeads("abc", texts).text()


def test_versions_that_are_there_are_nothing_to_tell(judge: FileJudge) -> None:
    check_states_of_epoch(judge, 1)
    check_states_of_epoch(judge, 0)
    # That of another epoch, and positions that the checkpoint has as well.
    check_group(judge, p0=(9, "1", heads("1-gone.1")), p1=(12, "2", heads("0-ab.1")))
    assert told(judge) == []


def test_version_of_an_epoch_that_is_not_there_is_a_fault(judge: FileJudge) -> None:
    judge.checkpoint.files.delete("continuous/state/0/t-1/0-ab.0.delta")
    check_states_of_epoch(judge, 1)
    text = "Versions of states that epoch 1 names are not whole: 0/t-1/0-ab.1 (0-ab.0.delta). A restart is refused."
    assert told(judge) == [("state-missing", f"{VERSIONS}/1", text)]


@pytest.mark.parametrize(
    ("code", "data"), [("state-missing", None), ("state-damaged", b""), ("state-damaged", b"PKS1" + bytes(40))]
)
def test_file_behind_the_newest_version_that_a_restart_cannot_read_is_a_fault(
    judge: FileJudge, code: str, data: bytes | None
) -> None:
    name = "continuous/state/0/t-0/0-ab.0.delta"
    if data is None:
        judge.checkpoint.files.delete(name)
    else:
        judge.checkpoint.files.replace(name, data)
    check_states_of_epoch(judge, 1)
    ((found, where, text),) = told(judge)
    assert (found, where) == (code, f"{VERSIONS}/1" if data is None else "continuous/state/0/t-0")
    assert "0-ab.0.delta" in text
    assert text.endswith(("A restart is refused.", "A restart fails."))


def test_version_that_a_running_query_removes_in_the_meantime_is_no_fault(
    judge: FileJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(_: StateChains, directory: str, text: str) -> None:
        judge.checkpoint.files.delete(f"{VERSIONS}/1")
        raise StateError(f"{directory}/{text} is gone", condition="STATE_VERSION_MISSING", parameters={"name": "x"})

    monkeypatch.setattr(StateChains, "check", check)
    check_states_of_epoch(judge, 1)
    assert told(judge) == []
    assert judge.findings.unknown == [f"{VERSIONS}/1 was removed while its states were read: the query runs."]


def test_file_that_was_being_written_is_a_note(judge: FileJudge, tmp_path: Path) -> None:
    (tmp_path / "continuous/state/0/t-0/.2-ab.0.delta.0123456789abcdef.tmp").write_bytes(b"x")
    check_states_of_epoch(judge, 1)
    ((code, where, text),) = told(judge)
    assert (code, where) == ("temporary", "continuous/state/0/t-0/.2-ab.0.delta.0123456789abcdef.tmp")
    assert "written as 2-ab.0.delta was left behind" in text


def test_version_that_a_position_names_and_the_checkpoint_does_not_have_is_a_fault(judge: FileJudge) -> None:
    check_group(judge, p0=(12, "3", heads("3-cd.1", None, "2-cd.1")), p1=(9, "1", heads("0-ab.1")))
    ((code, where, text),) = told(judge)
    assert (code, where) == ("state-missing", "group")
    assert "not whole in it: 0/t-0/3-cd.1 (3-cd.0.delta), 2/t-0/2-cd.1 (2-cd.0.delta). A restart" in text


def test_position_with_a_malformed_state_is_a_fault(judge: FileJudge) -> None:
    check_group(judge, p0=(12, "3", "abc,../x"))
    assert told(judge)[0][:2] == ("group-state", "group")


def test_query_without_transactions_has_no_states_of_a_group(judge: FileJudge) -> None:
    check_states_of_group(judge, Expectation("q", POSITION, POSITION, None), ClusterSnapshot(group={}))
    assert told(judge) == []
