"""The logs of checkpoints, read back."""

from __future__ import annotations

import json
from pathlib import Path

from kit.checkpoint_files import batches_of, end_of_batch


def write_batch(checkpoint: Path, number: int, ends: dict[str, dict[str, int]]) -> None:
    (checkpoint / "offsets").mkdir(exist_ok=True)
    (checkpoint / "offsets" / str(number)).write_text(f"v1\n{{}}\n{json.dumps(ends)}")


def test_batches_are_those_with_a_number_for_a_name_in_order(tmp_path: Path) -> None:
    for number in (10, 9, 2):
        write_batch(tmp_path, number, {})
    (tmp_path / "offsets" / ".9.crc").touch()
    assert batches_of(str(tmp_path)) == [2, 9, 10]
    assert batches_of(str(tmp_path), "commits") == []


def test_end_of_a_first_batch_leaves_its_start_out(tmp_path: Path) -> None:
    write_batch(tmp_path, 0, {"orders": {"00": 3, "0": 9, "1": 7}})
    assert end_of_batch(str(tmp_path), 0) == {"orders": {0: 9, 1: 7}}
