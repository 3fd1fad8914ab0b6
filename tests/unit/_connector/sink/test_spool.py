"""Spool files: each owner's in its own place, few calls, and nothing removed that is not ours."""

from __future__ import annotations

import errno
import os
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from pyspark_kafka._connector.sink.driver.exactly_once import _clean_up
from pyspark_kafka._connector.sink.spool import SpoolFiles
from pyspark_kafka.errors import CheckpointError

DAY_S = 86_400


def files_in(place: Path) -> list[str]:
    return sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())


@pytest.fixture(params=["local", "remote"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "spool") if request.param == "local" else f"mock:///{uuid.uuid4().hex}"


def test_spool_file_reads_back_and_is_removed_with_its_batch(location: str) -> None:
    spool = SpoolFiles(location, "query")
    name = spool.write(3, "0-17", [b"a", bytearray(b"bc")])
    kept = spool.write(4, "0-17", [b"later"])
    assert spool.read(name, 3) == b"abc"
    spool.remove_batch(3)
    assert spool.read(name, 3) is None
    assert spool.read(kept, 5) == b"later"
    spool.remove_batch(3)


def test_spool_file_that_is_too_long_is_read_one_byte_too_far(location: str) -> None:
    spool = SpoolFiles(location, "query")
    assert spool.read(spool.write(3, "0-17", [b"abcdef"]), 3) == b"abcd"


def test_another_query_in_the_same_place_keeps_its_files(location: str) -> None:
    one, other = SpoolFiles(location, "one"), SpoolFiles(location, "other")
    prepared = other.write(3, "0-17", [b"not committed yet"])
    one.write(3999, "0-1", [b"left by an attempt"])
    _clean_up(one, 4000, spooled=[one.write(4000, "0-1", [b"published"])])
    assert other.read(prepared, 17) == b"not committed yet"
    assert one.read(f"{one.directory}/3999", 1) is None


def test_files_of_others_are_never_removed(tmp_path: Path) -> None:
    spool = SpoolFiles(str(tmp_path), "query")
    spool.write(7, "0-1", [b"x"])
    foreign = [
        "2024-05-01.csv",
        "100-days.txt",
        "5/mine.txt",
        "pyspark-kafka-query/notes",
        "pyspark-kafka-query/7/mine",
    ]
    for name in foreign:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
        os.utime(tmp_path / name, (0, 0))
    for batch_id in (7, 4000):
        _clean_up(spool, batch_id, spooled=["any"])
    spool.remove_owner()
    assert files_in(tmp_path) == sorted(foreign)


def test_files_of_earlier_batches_are_removed_with_a_later_one(tmp_path: Path) -> None:
    spool = SpoolFiles(str(tmp_path), "query")
    for batch_id in (3, 4, 5):
        spool.write(batch_id, "0-1", [b"x"])
    _clean_up(spool, 4, spooled=["any"])
    assert [name.split("/")[1] for name in files_in(tmp_path)] == ["5"]
    # Also where nothing is spooled for long.
    _clean_up(spool, 100, spooled=[])
    assert files_in(tmp_path) == []


def test_a_task_that_is_killed_while_it_writes_leaves_a_file_that_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = SpoolFiles(str(tmp_path), "query")

    # As after kill -9: nothing is tidied up.
    monkeypatch.setattr(os, "remove", lambda _: None)

    def pieces() -> Any:
        yield b"half"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        spool.write(3, "0-1", pieces())
    monkeypatch.undo()
    assert len(files_in(tmp_path)) == 1
    spool.remove_before(4)
    assert files_in(tmp_path) == []


def test_a_write_that_fails_leaves_no_part_of_a_file_in_a_store() -> None:
    spool = SpoolFiles(f"mock:///{uuid.uuid4().hex}", "query")

    def pieces() -> Any:
        yield b"half"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        spool.write(3, "0-1", pieces())
    opened, root = spool._open()
    found = opened.get_file_info(fs.FileSelector(root, recursive=True))
    assert found
    assert [each.path for each in found if each.type == fs.FileType.File] == []


def test_spool_of_a_dead_job_is_removed_after_some_days(tmp_path: Path) -> None:
    SpoolFiles(str(tmp_path), "dead").write(0, "0-1", [b"x"])
    live = SpoolFiles(str(tmp_path), "live")
    live.write(0, "0-1", [b"x"])
    for now, owners in ((time.time() + 6 * DAY_S, 2), (time.time() + 8 * DAY_S, 1)):
        live.remove_dead(lambda now=now: now)  # type: ignore[misc]
        assert len(files_in(tmp_path)) == owners
    assert files_in(tmp_path)[0].startswith("pyspark-kafka-live/")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pyspark-kafka-live"]


def test_a_batch_that_spooled_nothing_asks_the_file_system_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_: object) -> None:
        raise AssertionError("the file system was asked")

    monkeypatch.setattr(SpoolFiles, "_open", asked)
    for batch_id in range(1, 100):
        _clean_up(SpoolFiles("mock:///x", "query"), batch_id, spooled=[])


def test_files_of_a_batch_take_few_calls_where_each_goes_to_an_object_store(monkeypatch: pytest.MonkeyPatch) -> None:
    opened, root = SpoolFiles(f"mock:///{uuid.uuid4().hex}", "query")._open()
    calls: Counter[str] = Counter()

    class Counting:
        def __getattr__(self, name: str) -> Any:
            calls[name] += 1
            return getattr(opened, name)

    monkeypatch.setattr(SpoolFiles, "_open", lambda _: (Counting(), root))
    spool = SpoolFiles("mock:///x", "query")
    names = [spool.write(3, f"0-{task}", [b"abc"]) for task in range(20)]
    assert all(spool.read(name, 3) == b"abc" for name in names)
    assert calls["open_output_stream"] <= 21  # the first one finds no directory
    assert calls["open_input_stream"] == 20
    assert calls.total() <= 42
    calls.clear()
    _clean_up(spool, 3, spooled=names)
    assert calls.total() <= 3
    assert spool.read(names[0], 3) is None


def test_full_disk_is_named_in_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(CheckpointError) as caught:
        SpoolFiles(str(tmp_path), "query").write(0, "0-1", [b"x"])
    text = str(caught.value)
    assert text.startswith("[SPOOL_IO] Cannot write pyspark-kafka-query/0/0-1-")
    assert f"of spool (option 'spoolLocation') {tmp_path}: OSError: [Errno 28] No space left on device. Hint: " in text
    assert "full" in text.split("Hint: ")[1]
    assert "CHECKPOINT" not in text
    assert files_in(tmp_path) == []


@pytest.mark.parametrize(
    ("number", "hint"),
    [(errno.ENOSPC, "full"), (errno.EDQUOT, "quota"), (errno.EROFS, "permission"), (errno.EIO, "Check that")],
)
def test_the_hint_fits_the_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, hint: str) -> None:
    def fail(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "open", fail)
    with pytest.raises(CheckpointError) as caught:
        SpoolFiles(str(tmp_path), "query").write(0, "0-1", [b"x"])
    assert hint in caught.value.hint


def test_spool_file_is_not_synced(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise AssertionError("a micro-batch that runs again spools again")

    monkeypatch.setattr(os, "fsync", fail)
    assert SpoolFiles(location, "query").write(3, "0-17", [b"a"])
