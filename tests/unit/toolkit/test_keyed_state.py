"""State by key: merged with its epoch, snapshotted, restored, and sound after kill -9."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.errors import CommitConflictError, StateError
from pyspark_kafka.toolkit import KeyedState

if TYPE_CHECKING:
    from pathlib import Path


def number(value: int) -> bytes:
    return struct.pack(">q", value)


def add(_: bytes, old: bytes, new: bytes) -> bytes | None:
    total = struct.unpack(">q", old)[0] + struct.unpack(">q", new)[0]
    return number(total) if total else None


def test_updates_are_merged_with_what_is_there(tmp_path: Path) -> None:
    with KeyedState(tmp_path) as state:
        assert (state.epoch_id, len(state)) == (None, 0)
        assert state.merge(7, {b"a": number(1), b"b": number(2)}, add)
        assert state.merge(8, {b"b": number(3), b"c": number(4)}, add)
        assert dict(state.items()) == {b"a": number(1), b"b": number(5), b"c": number(4)}
        assert state.epoch_id == 8


def test_same_epoch_again_changes_nothing(tmp_path: Path) -> None:
    with KeyedState(tmp_path) as state:
        state.merge(0, {b"a": number(1)}, add)
        assert not state.merge(0, {b"a": number(1)}, add)
        assert state.get(b"a") == number(1)


@pytest.mark.parametrize("epoch", [3, 6])
def test_epoch_out_of_order_is_an_error(tmp_path: Path, epoch: int) -> None:
    with KeyedState(tmp_path) as state:
        state.merge(4, {b"a": number(1)})
        with pytest.raises(CommitConflictError, match=f"Epoch {epoch} cannot be merged into a state of epoch 4"):
            state.merge(epoch, {b"a": number(2)})
        assert (state.epoch_id, state.get(b"a")) == (4, number(1))


def test_keys_are_removed_by_name_and_by_combination(tmp_path: Path) -> None:
    with KeyedState(tmp_path) as state:
        state.merge(0, {b"a": number(1), b"b": number(2), b"c": number(3)})
        state.merge(1, {b"a": number(-1)}, add, remove=[b"c", b"not there"])
        assert dict(state.items()) == {b"b": number(2)}


def test_many_keys_are_looked_up_at_once(tmp_path: Path) -> None:
    with KeyedState(tmp_path) as state:
        state.merge(0, {number(each): number(each * 2) for each in range(3_000)})
        found = state.get_all(number(each) for each in range(2_990, 3_010))
        assert found == {number(each): number(each * 2) for each in range(2_990, 3_000)}


def test_state_is_there_after_it_was_closed(tmp_path: Path) -> None:
    with KeyedState(tmp_path) as state:
        state.merge(0, {b"a": number(1)})
    with KeyedState(tmp_path) as state:
        assert (state.epoch_id, state.get(b"a")) == (0, number(1))


def test_snapshot_goes_back_to_its_epoch(tmp_path: Path) -> None:
    with KeyedState(tmp_path) as state:
        state.merge(0, {b"a": number(1)})
        state.snapshot()
        state.merge(1, {b"a": number(1), b"b": number(9)}, add)
        state.restore(0)
        assert (state.epoch_id, dict(state.items())) == (0, {b"a": number(1)})
        assert state.merge(1, {b"a": number(5)}, add)
        assert state.get(b"a") == number(6)


def test_old_snapshots_are_removed(tmp_path: Path) -> None:
    with KeyedState(tmp_path, kept_snapshots=2) as state:
        for epoch in range(5):
            state.merge(epoch, {b"a": number(epoch)})
            state.snapshot()
        assert state.snapshots() == [3, 4]


def test_snapshot_that_is_cut_short_is_an_error_and_the_state_stays(tmp_path: Path) -> None:
    with KeyedState(tmp_path) as state:
        state.merge(0, {number(each): b"x" * 100 for each in range(2_000)})
        path = state.snapshot()
        state.merge(1, {b"a": number(1)})
        path.write_bytes(path.read_bytes()[:50_000])
        with pytest.raises(StateError, match="restoring the snapshot of epoch 0 failed"):
            state.restore(0)
        assert (state.epoch_id, len(state)) == (1, 2_001)


def test_missing_snapshot_is_an_error_that_names_those_there_are(tmp_path: Path) -> None:
    with KeyedState(tmp_path) as state:
        with pytest.raises(StateError, match="nothing to snapshot"):
            state.snapshot()
        state.merge(2, {b"a": number(1)})
        state.snapshot()
        with pytest.raises(StateError, match=r"no snapshot of epoch 1 .* Choose one of \[2\]"):
            state.restore(1)


def test_file_of_something_else_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "state.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(StateError, match="opening the state failed"):
        KeyedState(tmp_path)


_MERGING = """
import struct, sys
from pyspark_kafka.toolkit import KeyedState

def add(_, old, new):
    return struct.pack(">q", struct.unpack(">q", old)[0] + struct.unpack(">q", new)[0])

state = KeyedState(sys.argv[1])
for epoch in range(state.epoch_id + 1 if state.epoch_id is not None else 0, 100_000):
    state.merge(epoch, {b"%d" % key: struct.pack(">q", 1) for key in range(50)}, add)
    print(epoch, flush=True)
"""


def test_kill_between_any_two_steps_leaves_whole_epochs(tmp_path: Path) -> None:
    done = -1
    for _ in range(4):
        program = subprocess.Popen([sys.executable, "-c", _MERGING, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert program.stdout is not None
        for line in program.stdout:
            done = int(line)
            # The lines that follow are of epochs that it merged before the signal came.
            if done % 23 == 22:
                os.kill(program.pid, signal.SIGKILL)
        program.stdout.close()
        program.wait()
        with KeyedState(tmp_path) as state:
            # What was said to be merged is there; the epoch in hand is there as a whole or not at all.
            assert state.epoch_id is not None
            assert state.epoch_id in (done, done + 1)
            assert {value for _, value in state.items()} == {number(state.epoch_id + 1)}
            assert len(state) == 50
