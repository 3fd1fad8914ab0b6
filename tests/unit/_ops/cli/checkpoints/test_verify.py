from __future__ import annotations

import json
from pathlib import Path

import pytest

from kit.checkpoint_files import QUERY_ID, write_checkpoint
from kit.programs.cli import invoke
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._connector.sink.commit_marker import CommitMarker
from pyspark_kafka._ops.operations.checkpoints.verify.cluster_snapshot import ClusterSnapshot
from pyspark_kafka._ops.operations.checkpoints.verify.expectation import Expectation

ENDS = [{"t": {"0": 5}}, {"t": {"0": 9}}]


def test_status_is_0_if_nothing_is_wrong(tmp_path: Path) -> None:
    result = invoke("checkpoint", "verify", str(write_checkpoint(tmp_path, ENDS)))
    assert result.exit_code == 0
    assert result.output == "0 faults, 0 warnings, 0 notes, by its files; no broker was asked.\n"


def test_status_is_1_for_a_fault_with_what_to_do(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS, finished=1)
    (tmp_path / "offsets" / "1").write_bytes(b"")
    result = invoke("checkpoint", "verify", str(tmp_path))
    assert result.exit_code == 1
    first, second, last = result.output.splitlines()
    assert first.startswith("fault   offsets/1: The file is empty: it was cut short.")
    assert first.endswith("[damaged]")
    assert second.startswith("        Do: Restore the file from a copy of the checkpoint.")
    assert last.startswith("1 fault, 0 warnings")


def test_status_is_0_for_a_warning(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS)
    (tmp_path / "commits" / "0").write_bytes(b"")
    assert invoke("checkpoint", "verify", str(tmp_path)).exit_code == 0
    assert "warning commits/0" in invoke("checkpoint", "verify", str(tmp_path)).output
    assert "warning" not in invoke("checkpoint", "verify", "--batches", "1", str(tmp_path)).output.splitlines()[0][:7]


def test_json_has_findings_and_what_is_not_known(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS)
    (tmp_path / "commits" / "1").write_bytes(b"")
    told = json.loads(invoke("checkpoint", "verify", "--json", str(tmp_path)).stdout)
    assert (told["faults"], told["warnings"], told["asked_brokers"], told["unknown"]) == (1, 0, False, [])
    assert told["findings"][0]["where"] == "commits/1"


def test_status_is_2_without_a_checkpoint(tmp_path: Path) -> None:
    assert invoke("checkpoint", "verify", str(tmp_path)).exit_code == 2


def test_batch_that_is_committed_while_brokers_are_asked_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_checkpoint(tmp_path, ENDS)
    positions = []

    def check(*_: object, **__: object) -> None:
        write_checkpoint(tmp_path, [{"t": {"0": 12}}], first=2)

    def ask(_: object, expected: Expectation, *__: object) -> ClusterSnapshot:
        positions.append(expected.position)
        write_checkpoint(tmp_path, [{"t": {"0": 15}}], first=3)
        return ClusterSnapshot(marker_known=True, marker=CommitMarker(expected.sink_id, QUERY_ID, 3, "x"))

    monkeypatch.setattr("pyspark_kafka._ops.cli.checkpoints.verify.check_files", check)
    monkeypatch.setattr("pyspark_kafka._ops.cli.checkpoints.verify.ask_cluster", ask)
    result = invoke("checkpoint", "verify", "--bootstrap-servers", "nobody:9092", str(tmp_path))
    assert (result.exit_code, positions) == (0, [{TopicPartition("t", 0): 12}])
    assert result.stdout.endswith("0 faults, 0 warnings, 1 note, by its files and the brokers.\n")


def test_text_of_hostile_files_cannot_move_the_cursor(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS)
    (tmp_path / "offsets" / "1").write_bytes(b"\x1b[2Jv1\n")
    (tmp_path / "offsets" / "no\x1b[2Jtes").write_bytes(b"")
    for command in ("verify", "explain", "show"):
        result = invoke("checkpoint", command, str(tmp_path))
        assert "\x1b" not in result.output + result.stderr
