"""The states of a lane: what was committed is there again, what was not is gone, whatever was written and when."""

from __future__ import annotations

import json
import os
import random
import struct
import tempfile
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest

from kit.waiting import PATIENCE_S
from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.continuous.state import history, lane_state
from pyspark_kafka.continuous.state.lane_state import LaneState
from pyspark_kafka.continuous.state.version_files import VersionFiles
from pyspark_kafka.continuous.state.versions import StatePlan
from pyspark_kafka.errors import CheckpointError, StateError


@pytest.fixture(autouse=True)
def local_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """No state leaves a local copy behind, and none waits for the disk: no machine loses its power here."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    place = tmp_path / "local"
    place.mkdir()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(place))
    yield place
    assert not list(place.iterdir())


def opened(
    place: Path, heads: Mapping[str, str], *groups: str, run: str = "a", ttl_ms: int = 0, now: Any = None
) -> LaneState:
    plan = StatePlan(str(place / "checkpoint"), run, {0: groups or ("t-0",)}, dict(heads), (ttl_ms,))
    return LaneState(plan, 0, 7) if now is None else LaneState(plan, 0, 7, now)


def put(state: LaneState, group: str, **values: str | None) -> None:
    state.point_at(group)
    state.put_all(
        0,
        [key.encode() for key in values],
        [value.encode() if value is not None else None for value in values.values()],
    )


def get(state: LaneState, group: str, *keys: str) -> list[bytes | None]:
    state.point_at(group)
    return state.get_all(0, [key.encode() for key in keys])


def settle(state: LaneState) -> None:
    """Wait for what the state does beside the lane."""
    state._worker.submit(lambda: None).result()
    state._raise_failures()


def end(state: LaneState) -> dict[str, str]:
    pending = state.end_epoch()
    pending.write()
    return dict(json.loads(pending.text or "{}"))


def test_committed_epoch_is_there_again_and_an_open_one_is_not(tmp_path: Path) -> None:
    with closing(opened(tmp_path, {})) as state:
        state.begin_epoch(0)
        put(state, "t-0", a="1", b="1")
        heads = end(state)
        state.begin_epoch(1)
        put(state, "t-0", a="2", b=None)
        assert get(state, "t-0", "a", "b", "a") == [b"2", None, b"2"]
        lost = end(state)
    assert lost.keys() == heads.keys()
    with closing(opened(tmp_path, heads, run="b")) as state:
        assert get(state, "t-0", "a", "b", "c") == [b"1", b"1", None]
        state.begin_epoch(1)
        put(state, "t-0", b="5")
        heads = end(state)
    with closing(opened(tmp_path, heads, run="c")) as state:
        assert get(state, "t-0", "a", "b") == [b"1", b"5"]


def test_epoch_without_changes_writes_nothing(tmp_path: Path) -> None:
    with closing(opened(tmp_path, {})) as state:
        state.begin_epoch(0)
        get(state, "t-0", "a")
        assert end(state) == {}
    assert not (tmp_path / "checkpoint").exists()


def test_task_that_should_be_gone_changes_nothing_of_its_successor(tmp_path: Path) -> None:
    with closing(opened(tmp_path, {}, run="old")) as old, closing(opened(tmp_path, {}, run="new")) as new:
        for state in (old, new):
            state.begin_epoch(0)
        put(new, "t-0", a="new")
        heads = end(new)
        put(old, "t-0", a="old", b="old")
        end(old)
    with closing(opened(tmp_path, heads, run="later")) as state:
        assert get(state, "t-0", "a", "b") == [b"new", None]


def test_key_groups_are_apart_and_move_between_lanes(tmp_path: Path) -> None:
    with closing(opened(tmp_path, {}, "t-0", "t-1")) as state:
        state.begin_epoch(0)
        put(state, "t-0", a="0")
        put(state, "t-1", a="1")
        heads = end(state)
    assert len(heads) == 2
    with closing(opened(tmp_path, heads, "t-2", "t-1", run="b")) as state:
        assert get(state, "t-1", "a") == [b"1"]
        assert get(state, "t-2", "a") == [None]
        with pytest.raises(StateError) as caught:
            state.point_at("t-0")
        assert caught.value.condition == "STATE_KEY_GROUP_UNKNOWN"
        with pytest.raises(StateError):
            state.point_at(None)


@pytest.mark.parametrize("seed", range(12))
def test_states_of_random_epochs_and_restarts_are_those_of_a_dictionary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Small limits, so that all of a state is written, parts end and caches turn over within the test."""
    r = random.Random(seed)
    monkeypatch.setattr(lane_state, "_MAX_CHANGED_BYTES", r.choice([400, 4_000]))
    monkeypatch.setattr(lane_state, "_HALF_CACHE_BYTES", r.choice([300, 3_000]))
    monkeypatch.setattr(lane_state, "_MAX_RECENT_BYTES", r.choice([500, 5_000]))
    monkeypatch.setattr(lane_state, "_PART_BYTES", r.choice([20, 200]))
    monkeypatch.setattr(history, "_MIN_DELTAS", 3)
    monkeypatch.setattr(history, "EPOCHS_KEPT", 10)
    groups = ["t-0", "t-1", "u-0"]
    # By epoch: the versions, and what the states hold.
    past: dict[int, tuple[dict[str, str], dict[str, dict[str, str]]]] = {-1: ({}, {group: {} for group in groups})}
    epoch = 0
    for run in range(12):
        # Back to the last epoch, or to an earlier one that is kept.
        epoch = r.choice([epoch, epoch, min(epoch, max(0, max(past) - r.randint(0, 8)))])
        heads, known = past[epoch - 1]
        heads, values = dict(heads), {group: dict(content) for group, content in known.items()}
        with closing(opened(tmp_path, heads, *groups, run=f"r{run}")) as state:
            for group in groups:
                keys = [str(number) for number in range(40)]
                expected = [values[group][key].encode() if key in values[group] else None for key in keys]
                assert get(state, group, *keys) == expected
            for _ in range(r.randint(0, 9)):
                state.begin_epoch(epoch)
                for _ in range(r.randint(0, 4)):
                    group = r.choice(groups)
                    changes: dict[str, str | None] = {
                        str(r.randrange(40)): r.choice([None, str(r.random())]) for _ in range(r.randint(1, 8))
                    }
                    put(state, group, **changes)
                    for key, value in changes.items():
                        if value is None:
                            values[group].pop(key, None)
                        else:
                            values[group][key] = value
                    key = str(r.randrange(40))
                    wanted = values[group].get(key)
                    assert get(state, group, key) == [wanted.encode() if wanted is not None else None]
                heads.update(end(state))
                assert {group: state.rows(0, group) for group in groups} == {
                    group: len(content) for group, content in values.items()
                }
                past[epoch] = dict(heads), {group: dict(content) for group, content in values.items()}
                epoch += 1
            if r.random() < 0.5:
                # An epoch that is never committed.
                state.begin_epoch(epoch)
                put(state, "t-0", **{str(r.randrange(40)): "lost"})
                if r.random() < 0.5:
                    end(state)


@pytest.mark.parametrize("seed", range(12))
def test_versions_stay_as_long_as_a_position_or_a_kept_epoch_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Lanes commit several times within an epoch; runs begin at the epoch of the checkpoint, behind the positions."""
    r = random.Random(seed)
    monkeypatch.setattr(history, "_MIN_DELTAS", r.choice([2, 3, 9]))
    monkeypatch.setattr(history, "EPOCHS_KEPT", 10)
    content: dict[str, str] = {}
    # Of the last commit with positions, and of the epochs of the checkpoint.
    position: tuple[dict[str, str], dict[str, str]] = {}, {}
    kept: dict[int, tuple[dict[str, str], dict[str, str]]] = {}
    epoch = 0
    for run in range(9):
        heads, content = dict(position[0]), dict(position[1])
        with closing(opened(tmp_path, heads, run=f"r{run}")) as state:
            # Lanes are at most 5 epochs ahead of the checkpoint.
            until = epoch + r.choice([1, 4, 20])
            for current in range(epoch, until + r.randint(0, 5)):
                state.begin_epoch(current)
                reported: dict[str, str] = {}
                for _ in range(r.randint(1, 3)):
                    for key in r.sample("abcdef", r.randint(0, 2)):
                        content[key] = f"{run} {current} {r.random()}"
                        put(state, "t-0", **{key: content[key]})
                    reported = end(state)
                    heads.update(reported)
                    position = dict(heads), dict(content)
                assert state.committed["t-0"].endswith(heads.get("0/t-0", "-"))
                if current < until:
                    kept[current] = position
                    kept = {number: entry for number, entry in kept.items() if number > current - 5}
            if r.random() < 0.3:
                # One that is written, and whose transaction is never committed.
                state.begin_epoch(current)
                put(state, "t-0", a="lost")
                end(state)
            settle(state)
            epoch = max(kept) + 1 if kept else 0
        for number, (named, expected) in enumerate([position, *kept.values()]):
            with closing(opened(tmp_path, named, run=f"look{run}x{number}")) as state:
                found = get(state, "t-0", *"abcdef")
            assert found == [expected[key].encode() if key in expected else None for key in "abcdef"]


def test_counts_are_those_of_commits_since_the_last_report(tmp_path: Path) -> None:
    with closing(opened(tmp_path, {}, "t-0", "t-1")) as state:
        state.begin_epoch(0)
        put(state, "t-0", a="1", b="1", c="1")
        put(state, "t-0", a="2", c=None)
        heads = end(state)
        put(state, "t-1", a="1")
        heads.update(end(state))
        first = state.take_counts(0)
        assert (first.rows, first.updated, first.removed) == (3, 3, 1)
        assert state.take_counts(0) == lane_state.StateCounts(rows=3, size=first.size)
        state.begin_epoch(1)
        put(state, "t-0", a=None, never=None)
        heads.update(end(state))
        assert state.take_counts(0).rows == 2
    with closing(opened(tmp_path, heads, "t-0", "t-1", run="b")) as state:
        assert (state.rows(0, "t-0"), state.rows(0, "t-1")) == (1, 1)
        again = state.take_counts(0)
        assert (again.rows, again.updated, again.removed) == (2, 0, 0)
    files = (tmp_path / "checkpoint" / "continuous" / "state").rglob("*.delta")
    assert again.size == sum(file.stat().st_size for file in files)


def test_files_of_a_long_run_are_bounded(tmp_path: Path) -> None:
    heads: dict[str, str] = {}
    with closing(opened(tmp_path, {})) as state:
        for epoch in range(300):
            state.begin_epoch(epoch)
            put(state, "t-0", **{str(epoch % 20): str(epoch)})
            heads = end(state)
        settle(state)
    names = list((tmp_path / "checkpoint" / "continuous" / "state" / "0" / "t-0").iterdir())
    assert len(names) < 200
    with closing(opened(tmp_path, heads, run="b")) as state:
        assert get(state, "t-0", "19", "0") == [b"299", b"280"]


def test_values_are_gone_after_their_time_and_leave_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "_MIN_DELTAS", 4)
    now = [1_000_000]
    with closing(opened(tmp_path, {}, ttl_ms=1_000, now=lambda: now[0])) as state:
        state.begin_epoch(0)
        put(state, "t-0", old="secret", kept="1")
        heads = end(state)
        for epoch in range(1, 8):
            now[0] += 300
            state.begin_epoch(epoch)
            put(state, "t-0", kept=str(epoch))
            heads = end(state)
            settle(state)
            assert get(state, "t-0", "old", "kept") == [b"secret" if epoch <= 3 else None, str(epoch).encode()]
            # One that is too old counts until it is removed.
            assert state.rows(0, "t-0") == 1 + (epoch < 7)
    wholes = sorted((tmp_path / "checkpoint").rglob("*.all"))
    assert wholes
    assert b"secret" not in wholes[-1].read_bytes()
    with closing(opened(tmp_path, heads, run="b", ttl_ms=1_000, now=lambda: now[0])) as state:
        assert get(state, "t-0", "old", "kept") == [None, b"7"]


def test_missing_or_damaged_files_are_errors(tmp_path: Path) -> None:
    with closing(opened(tmp_path, {})) as state:
        state.begin_epoch(0)
        put(state, "t-0", a="1")
        heads = end(state)
    (path,) = (tmp_path / "checkpoint").rglob("*.delta")
    whole = path.read_bytes()
    for damaged in (whole[:-3], b"", whole[:20] + b"x" + whole[21:], whole + b"x"):
        path.write_bytes(damaged)
        with pytest.raises(StateError) as caught:
            opened(tmp_path, heads, run="b")
        assert caught.value.condition == "STATE_VERSION_DAMAGED"
    path.unlink()
    with pytest.raises(StateError) as caught:
        opened(tmp_path, heads, run="b")
    assert caught.value.condition == "STATE_VERSION_MISSING"
    assert str(CheckpointFiles(str(tmp_path / "checkpoint")).location) in str(caught.value)


def test_file_whose_offsets_are_made_up_is_an_error_and_not_read(tmp_path: Path) -> None:
    """Its checksum is right, so nothing else stands between these offsets and memory that is not of the file."""
    with closing(opened(tmp_path, {})) as state:
        state.begin_epoch(0)
        put(state, "t-0", some="1", more="2", keys="3")
        heads = end(state)
    (path,) = (tmp_path / "checkpoint").rglob("*.delta")
    begin = len(b"PKS1") + 4
    body = bytearray(path.read_bytes()[begin:])
    keys = pa.ipc.open_stream(bytes(body)).read_all().column("key").chunk(0)
    offsets = keys.buffers()[1].to_pybytes()[: 4 * (len(keys) + 1)]
    assert body.count(offsets) == 1
    at = body.index(offsets) + len(offsets)
    body[at - 4 : at] = struct.pack("<i", 1 << 30)
    path.write_bytes(b"PKS1" + struct.pack(">I", zlib.crc32(body)) + body)
    with pytest.raises(StateError, match="offsets") as caught:
        opened(tmp_path, heads, run="b")
    assert caught.value.condition == "STATE_VERSION_DAMAGED"


def test_file_with_other_columns_is_an_error(tmp_path: Path) -> None:
    with closing(opened(tmp_path, {})) as state:
        state.begin_epoch(0)
        put(state, "t-0", a="1")
        heads = end(state)
    (path,) = (tmp_path / "checkpoint").rglob("*.delta")
    sink = pa.BufferOutputStream()
    table = pa.table({"key": [1], "value": [2]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    body = sink.getvalue().to_pybytes()
    path.write_bytes(b"PKS1" + struct.pack(">I", zlib.crc32(body)) + body)
    with pytest.raises(StateError, match="its columns are not the columns of a state"):
        opened(tmp_path, heads, run="b")


def test_file_that_is_no_arrow_stream_is_an_error_though_its_checksum_is_right(tmp_path: Path) -> None:
    with closing(opened(tmp_path, {})) as state:
        state.begin_epoch(0)
        put(state, "t-0", a="1")
        heads = end(state)
    (path,) = (tmp_path / "checkpoint").rglob("*.delta")
    whole = path.read_bytes()[8:]
    for body in (b"", whole[:20], whole[:-40], b"\xff" * 64, whole[:8] + b"\x7f" * 8 + whole[16:]):
        path.write_bytes(b"PKS1" + struct.pack(">I", zlib.crc32(body)) + body)
        with pytest.raises(StateError) as caught:
            opened(tmp_path, heads, run="b")
        assert caught.value.condition == "STATE_VERSION_DAMAGED"


def test_value_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane_state, "_MAX_VALUE_BYTES", 1_000)
    with closing(opened(tmp_path, {})) as state:
        state.begin_epoch(0)
        with pytest.raises(StateError) as caught:
            put(state, "t-0", a="x" * 1_000)
        assert caught.value.condition == "STATE_VALUE_TOO_LARGE"


def test_local_copy_that_a_killed_process_left_is_removed(tmp_path: Path, local_directories: Path) -> None:
    left = Path(tempfile.mkdtemp(prefix="pyspark-kafka-state-", dir=local_directories))
    (left / "lock").touch()
    (left / "state.sqlite").touch()
    with closing(opened(tmp_path, {})) as first:
        assert not left.exists()
        with closing(opened(tmp_path, {})):
            assert get(first, "t-0", "a") == [None]


def whole_states(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "checkpoint").rglob("*.whole"))


def test_lane_goes_on_though_old_files_cannot_be_removed_and_removes_them_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "_MIN_DELTAS", 3)
    monkeypatch.setattr(history, "EPOCHS_KEPT", 4)
    with closing(opened(tmp_path, {})) as state:
        with monkeypatch.context() as broken:
            error = CheckpointError("slow down", condition="CHECKPOINT_IO", retriable=True)
            broken.setattr(CheckpointFiles, "delete", Mock(side_effect=error))
            for epoch in range(20):
                state.begin_epoch(epoch)
                put(state, "t-0", a=str(epoch))
                end(state)
                settle(state)
        assert (tmp_path / "checkpoint/continuous/state/0/t-0/0-a7.0.delta").exists()
        for epoch in range(20, 24):
            state.begin_epoch(epoch)
            put(state, "t-0", a=str(epoch))
            heads = end(state)
            settle(state)
    assert len(list((tmp_path / "checkpoint/continuous/state/0/t-0").iterdir())) < 24
    with closing(opened(tmp_path, heads, run="b")) as state:
        assert get(state, "t-0", "a") == [b"23"]


def test_lane_without_the_right_to_remove_old_files_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "_MIN_DELTAS", 2)
    monkeypatch.setattr(history, "EPOCHS_KEPT", 0)
    error = CheckpointError("no right", condition="CHECKPOINT_IO")
    monkeypatch.setattr(CheckpointFiles, "delete", Mock(side_effect=error))
    with closing(opened(tmp_path, {})) as state:
        for epoch in range(2):
            state.begin_epoch(epoch)
            put(state, "t-0", a=str(epoch))
            end(state)
        with pytest.raises(CheckpointError, match="no right"):
            settle(state)


@pytest.mark.parametrize("part", ["write_whole_part", "end_whole"])
def test_whole_state_that_cannot_be_written_is_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    monkeypatch.setattr(history, "_MIN_DELTAS", 4)
    with closing(opened(tmp_path, {})) as state:
        for epoch in range(8):
            state.begin_epoch(epoch)
            # Later changes alone are not half as large as the whole state.
            put(state, "t-0", **({"a": "x" * 10_000} if not epoch else {"b": str(epoch)}))
            with monkeypatch.context() as broken:
                if epoch == 3:
                    error = CheckpointError("no room", condition="CHECKPOINT_IO", retriable=True)
                    broken.setattr(VersionFiles, part, Mock(side_effect=error))
                heads = end(state)
                settle(state)
            assert whole_states(tmp_path) == ([] if epoch < 7 else ["7-a7.whole"])
    with closing(opened(tmp_path, heads, run="b")) as state:
        assert get(state, "t-0", "a", "b") == [b"x" * 10_000, b"7"]


def test_states_of_a_lane_are_opened_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = [f"t-{number}" for number in range(12)]
    with closing(opened(tmp_path, {}, *groups)) as state:
        state.begin_epoch(0)
        for group in groups:
            put(state, group, a=group)
        heads = end(state)
    met, reading, lock, read = threading.Event(), [0], threading.Lock(), CheckpointFiles.read

    def meet(files: CheckpointFiles, name: str) -> bytes | None:
        with lock:
            reading[0] += 1
            if reading[0] >= 8:
                met.set()
        assert met.wait(PATIENCE_S), "one state is read after the other"
        return read(files, name)

    monkeypatch.setattr(CheckpointFiles, "read", meet)
    with closing(opened(tmp_path, heads, *groups, run="b")) as state:
        assert [get(state, group, "a") for group in groups] == [[group.encode()] for group in groups]
    assert reading == [len(groups)], "each file is read once"


def test_files_that_a_killed_task_was_writing_are_removed_by_the_next(tmp_path: Path) -> None:
    with closing(opened(tmp_path, {})) as state:
        state.begin_epoch(0)
        put(state, "t-0", a="1")
        heads = end(state)
    left = tmp_path / "checkpoint/continuous/state/0/t-0/.1-old.0.delta.0123456789abcdef.tmp"
    left.write_bytes(b"x")
    with closing(opened(tmp_path, heads, run="b")):
        assert not left.exists()


def test_files_that_a_killed_task_was_writing_are_removed_with_their_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "_MIN_DELTAS", 2)
    monkeypatch.setattr(history, "EPOCHS_KEPT", 2)
    left = tmp_path / "checkpoint/continuous/state/0/t-0/.1-old.0.delta.0123456789abcdef.tmp"
    with closing(opened(tmp_path, {})) as state:
        for epoch in range(8):
            state.begin_epoch(epoch)
            put(state, "t-0", a=str(epoch))
            end(state)
            settle(state)
            if not epoch:
                left.write_bytes(b"x")
    assert not left.exists()
