from __future__ import annotations

import json
from pathlib import Path

from kit.checkpoint_files import write_checkpoint
from kit.programs.cli import invoke


def test_status_of_diff_tells_whether_they_differ(tmp_path: Path) -> None:
    first = write_checkpoint(tmp_path / "a", [{"t": {"0": 5}}])
    second = write_checkpoint(tmp_path / "b", [{"t": {"0": 5}}])
    same = invoke("checkpoint", "diff", str(first), str(second))
    assert (same.exit_code, same.output) == (0, "Both are at the same positions.\n")
    write_checkpoint(second, [{"t": {"0": 5}}, {"t": {"0": 9}}])
    other = invoke("checkpoint", "diff", str(first), str(second))
    assert other.exit_code == 1
    assert "The second one is ahead in 1 partition, by 4 offsets." in other.output
    told = json.loads(invoke("checkpoint", "diff", "--json", str(first), str(second)).stdout)
    assert told["positions"] == [{"source": "0", "topic": "t", "partition": 0, "first": 5, "second": 9, "ahead": 4}]


def test_status_of_diff_is_3_if_a_file_cannot_be_read_and_2_without_a_checkpoint(tmp_path: Path) -> None:
    first = write_checkpoint(tmp_path / "a", [{"t": {"0": 5}}])
    second = write_checkpoint(tmp_path / "b", [{"t": {"0": 5}}])
    (second / "offsets" / "0").write_bytes(b"")
    result = invoke("checkpoint", "diff", str(first), str(second))
    assert result.exit_code == 3
    assert "Not read: offsets/0 of checkpoint" in result.stderr
    assert result.stdout == "The positions could not be compared.\n"
    told = json.loads(invoke("checkpoint", "diff", "--json", str(first), str(second)).stdout)
    assert (told["same"], told["positions"], len(told["problems"])) == (None, None, 1)
    assert invoke("checkpoint", "diff", str(first), str(tmp_path)).exit_code == 2
