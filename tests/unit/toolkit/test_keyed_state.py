"""State by key: merged with its epoch, snapshotted, and restored."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from pyspark_kafka.errors import CommitConflictError, StateError
from pyspark_kafka.toolkit import KeyedState, keyed_state


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


@pytest.mark.parametrize("prefix", [b"", b"a", b"a\xff", b"\xff", b"q"])
@pytest.mark.parametrize("first", [b"", b"\x00", b"b", b"\xff\xff\xff"])
def test_items_are_those_of_a_prefix_from_a_key_on_wherever_they_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefix: bytes, first: bytes
) -> None:
    for name in ("_MAX_CHANGES", "_MIN_MOVED"):
        monkeypatch.setattr(keyed_state, name, 3)
    letters = (b"a", b"b", b"\xff")
    keys = [*letters, *(x + y for x in letters for y in letters), *(x + y + x for x in letters for y in letters)]
    with KeyedState(tmp_path) as state:
        for epoch, key in enumerate(keys):
            state.merge(epoch, {key: number(epoch)}, remove=[keys[epoch // 2]] if epoch % 5 == 4 else [])
        left = dict(sorted(state.get_all(keys).items()))
        wanted = [item for item in left.items() if item[0].startswith(prefix) and item[0] >= prefix + first]
        assert list(state.items(prefix, first)) == wanted


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


def test_snapshot_of_a_large_state_writes_little(tmp_path: Path) -> None:
    with KeyedState(tmp_path) as state:
        state.merge(0, {number(each): b"x" * 100 for each in range(20_000)})
        state.merge(1, {number(5): b"y"})
        before = sum(path.stat().st_size for path in tmp_path.iterdir())
        assert state.snapshot() == 1
        after = sum(path.stat().st_size for path in tmp_path.iterdir())
        # The rows are 2 MB.
        assert after - before < 50_000


def test_second_snapshot_of_an_epoch_is_the_first_one(tmp_path: Path) -> None:
    with KeyedState(tmp_path, kept_snapshots=2) as state:
        for epoch in range(2):
            state.merge(epoch, {b"a": number(epoch)})
            assert [state.snapshot(), state.snapshot()] == [epoch, epoch]
        assert state.snapshots() == [0, 1]


def test_copy_is_a_state_of_its_own_with_its_snapshots(tmp_path: Path) -> None:
    with KeyedState(tmp_path / "first") as state:
        state.merge(0, {b"a": number(1)})
        state.snapshot()
        state.merge(1, {b"b": number(2)})
        assert state.copy_to(tmp_path / "second") == tmp_path / "second" / "state.sqlite"
        state.merge(2, {b"c": number(3)})
    with KeyedState(tmp_path / "second") as copy:
        assert (copy.epoch_id, dict(copy.items())) == (1, {b"a": number(1), b"b": number(2)})
        copy.restore(0)
        assert dict(copy.items()) == {b"a": number(1)}


def test_copy_does_not_replace_a_state(tmp_path: Path) -> None:
    with KeyedState(tmp_path / "first") as state, KeyedState(tmp_path / "second") as other:
        state.merge(0, {b"a": number(1)})
        other.merge(5, {b"b": number(2)})
        with pytest.raises(StateError, match="second has a state already"):
            state.copy_to(tmp_path / "second")
        assert dict(other.items()) == {b"b": number(2)}


def test_file_that_is_cut_short_is_an_error_of_each_method(tmp_path: Path) -> None:
    with KeyedState(tmp_path / "first") as state:
        state.merge(0, {number(each): b"x" * 100 for each in range(2_000)})
        state.snapshot()
        path = state.copy_to(tmp_path / "second")
    path.write_bytes(path.read_bytes()[:50_000])
    with pytest.raises(StateError, match=r"(opening|reading) the state failed"):
        KeyedState(path.parent)


def test_page_that_is_damaged_is_an_error_of_what_reads_it(tmp_path: Path) -> None:
    with KeyedState(tmp_path / "first") as state:
        state.merge(0, {number(each): b"x" * 100 for each in range(2_000)})
        path = state.copy_to(tmp_path / "second")
    content = bytearray(path.read_bytes())
    # All pages of rows; those before are the tables.
    content[6 * 4096 :] = b"\xff" * (len(content) - 6 * 4096)
    path.write_bytes(content)
    with pytest.raises(StateError, match="failed: database disk image is malformed"), KeyedState(path.parent) as copy:
        dict(copy.items())


def test_value_of_an_update_is_not_none(tmp_path: Path) -> None:
    with KeyedState(tmp_path) as state:
        with pytest.raises(TypeError, match="name the key in 'remove'"):
            state.merge(0, {b"a": None})  # type: ignore[dict-item]
        assert state.epoch_id is None


@pytest.mark.parametrize("seed", range(6))
def test_state_is_that_of_a_dictionary_whatever_the_order_of_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Merges, removals, snapshots, restores and new starts, with so little room that each merge moves changes."""
    monkeypatch.setattr(keyed_state, "_MAX_CHANGES", 20)
    monkeypatch.setattr(keyed_state, "_MIN_MOVED", 5)
    source = random.Random(seed)
    keys = [b"%02d" % each for each in range(60)]
    expected: dict[bytes, bytes] = {}
    kept: dict[int, dict[bytes, bytes]] = {}
    state, epoch, moved = KeyedState(tmp_path), 0, 0
    for _ in range(150):
        step = source.random()
        if step < 0.7:
            updates = {key: number(source.randrange(1, 4)) for key in source.sample(keys, source.randrange(1, 12))}
            removed = source.sample(keys, source.randrange(4))
            for key in removed:
                if key not in updates:
                    expected.pop(key, None)
            for key, new in updates.items():
                total = add(key, expected[key], new) if key in expected else new
                assert total is not None
                expected[key] = total
            state.merge(epoch, updates, add, remove=removed)
            epoch += 1
        elif step < 0.85 and epoch:
            kept[state.snapshot()] = dict(expected)
            kept = dict(sorted(kept.items())[-3:])
        elif step < 0.95 and kept:
            back = source.choice(sorted(kept))
            state.restore(back)
            expected, epoch = dict(kept[back]), back + 1
            kept = {each: values for each, values in kept.items() if each <= back}
        else:
            state.close()
            state = KeyedState(tmp_path)
        assert list(state.items()) == sorted(expected.items())
        assert len(state) == len(expected)
        assert state.get_all(keys) == expected
        assert state.get(keys[0]) == expected.get(keys[0])
        assert state.snapshots() == sorted(kept)
        moved = max(moved, state._run("SELECT count(*) FROM state").fetchone()[0])
    state.close()
    # Rows were in the large table, or this test says nothing about them.
    assert moved > 20


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
