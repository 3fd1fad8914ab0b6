"""Counters of processes as files in a folder: written when they change, summed, kept when processes end."""

from __future__ import annotations

import errno
import json
import os
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import SparkFiles, TaskContext

from pyspark_kafka._base.counters import CLIENTS_LENT, RETRIES, Counters
from pyspark_kafka._connector.spark.processes import counter_files
from pyspark_kafka._connector.spark.processes.counter_files import (
    FOLDER,
    CounterFile,
    CounterFiles,
    ProcessTotals,
    to_lines,
)

# Above the largest number of a process on any system.
NO_PROCESS = 1 << 30


def file_of(folder: Path, process_id: int, values: dict[str, float], role: str = "task") -> Path:
    path = folder / FOLDER / f"{process_id}-x.json"
    path.write_bytes(to_lines({"pid": process_id, "started": None, "role": role, "values": values}))
    return path


def test_nothing_is_written_where_nobody_reads(worker_root: Path) -> None:
    counters = Counters()
    counters.add(RETRIES)
    CounterFile(counters).write()
    assert list(worker_root.iterdir()) == []


def test_nothing_is_written_by_a_program_of_the_user(worker_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    CounterFiles(str(worker_root))
    monkeypatch.setattr(SparkFiles, "_is_running_on_worker", False)
    counters = Counters()
    counters.add(RETRIES)
    CounterFile(counters).write()
    assert list((worker_root / FOLDER).iterdir()) == []


def test_counters_are_read_as_they_were_written_and_again_after_a_change(worker_root: Path) -> None:
    files, counters = CounterFiles(str(worker_root)), Counters()
    file = CounterFile(counters)
    counters.add(RETRIES, 3)
    file.write()
    assert files.read() == {"driver": ProcessTotals(1, {RETRIES: 3})}
    (path,) = (worker_root / FOLDER).iterdir()
    written = path.stat().st_mtime_ns, path.stat().st_ino
    file.write()
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == written
    counters.add(RETRIES)
    file.write()
    assert files.read() == {"driver": ProcessTotals(1, {RETRIES: 4})}
    assert [each.name for each in (worker_root / FOLDER).iterdir()] == [path.name]
    assert (worker_root / FOLDER).stat().st_mode & 0o077 == 0


def test_a_process_that_has_run_a_task_is_one_of_tasks(worker_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, counters = CounterFiles(str(worker_root)), Counters()
    file = CounterFile(counters)
    counters.add(RETRIES)
    monkeypatch.setattr(TaskContext, "_taskContext", object())
    file.write()
    monkeypatch.setattr(TaskContext, "_taskContext", None)
    counters.add(RETRIES)
    file.write()
    assert files.read() == {"task": ProcessTotals(1, {RETRIES: 2})}


def test_an_ended_process_leaves_what_it_counted_and_no_gauge(worker_root: Path) -> None:
    files = CounterFiles(str(worker_root))
    file_of(worker_root, os.getpid(), {RETRIES: 1, CLIENTS_LENT: 2})
    path = file_of(worker_root, NO_PROCESS, {RETRIES: 5, CLIENTS_LENT: 3})
    for _ in range(3):
        assert files.read() == {"task": ProcessTotals(1, {RETRIES: 6, CLIENTS_LENT: 2})}
    assert not path.exists()


def test_a_file_that_is_gone_stays_counted(worker_root: Path) -> None:
    files = CounterFiles(str(worker_root))
    path = file_of(worker_root, os.getpid(), {RETRIES: 5})
    assert files.read()["task"].values == {RETRIES: 5}
    path.unlink()
    (worker_root / FOLDER).rmdir()
    assert files.read() == {"task": ProcessTotals(0, {RETRIES: 5})}


def test_a_process_id_that_is_used_again_is_another_process(worker_root: Path) -> None:
    files = CounterFiles(str(worker_root))
    path = file_of(worker_root, os.getpid(), {RETRIES: 5})
    path.write_bytes(to_lines({**json.loads(path.read_text().split("\n")[0]), "started": "1"}))
    expected = 0 if os.path.exists("/proc/self/stat") else 1  # noqa: PTH110 - of Linux
    assert files.read()["task"].processes == expected


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"pid": 1, "role": "task", "started": null, "values": {"retries": "x"}}',
        "[" * 9_999,
    ],
    ids=["empty", "cut short", "list", "null", "nothing", "no number", "deep"],
)
def test_a_file_that_cannot_be_read_is_left_out(worker_root: Path, content: str) -> None:
    files = CounterFiles(str(worker_root))
    file_of(worker_root, os.getpid(), {RETRIES: 1})
    line = content.encode()
    (worker_root / FOLDER / "1-y.json").write_bytes(b"%s\n%08x\n" % (line, zlib.crc32(line)))
    assert files.read() == {"task": ProcessTotals(1, {RETRIES: 1})}


def test_a_folder_that_cannot_be_written_ends_no_task(worker_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = CounterFiles(str(worker_root))
    counters = Counters()
    counters.add(RETRIES)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    file = CounterFile(counters)
    with monkeypatch.context() as broken:
        broken.setattr(os, "pwrite", full)
        file.write()
    file.write()
    assert files.read() == {"driver": ProcessTotals(1, {RETRIES: 1})}


def test_a_file_that_is_half_written_counts_as_it_was_before(worker_root: Path) -> None:
    files = CounterFiles(str(worker_root))
    path = file_of(worker_root, os.getpid(), {RETRIES: 10.0})
    assert files.read()["task"].values == {RETRIES: 10.0}
    path.write_bytes(path.read_bytes().replace(b"10.0", b"90.0"))
    assert files.read()["task"].values == {RETRIES: 10.0}


def test_a_shorter_text_takes_the_place_of_a_longer_one(worker_root: Path) -> None:
    files, counters = CounterFiles(str(worker_root)), Counters()
    file = CounterFile(counters)
    counters.set(CLIENTS_LENT, 123_456.789)
    file.write()
    counters.set(CLIENTS_LENT, 1)
    file.write()
    assert files.read() == {"driver": ProcessTotals(1, {CLIENTS_LENT: 1})}


def test_a_folder_that_is_made_again_gets_the_counters_again(worker_root: Path) -> None:
    files, counters = CounterFiles(str(worker_root)), Counters()
    file = CounterFile(counters)
    counters.add(RETRIES)
    file.write()
    shutil.rmtree(worker_root / FOLDER)
    counters.add(RETRIES)
    file.write()
    assert list(worker_root.iterdir()) == []
    files = CounterFiles(str(worker_root))
    file.write()
    assert files.read() == {"driver": ProcessTotals(1, {RETRIES: 2})}


def test_a_second_reader_of_an_application_is_no_error(worker_root: Path) -> None:
    CounterFiles(str(worker_root))
    CounterFiles(str(worker_root))


def test_file_that_cannot_be_read_for_once_is_not_counted_twice(
    worker_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = CounterFiles(str(worker_root))
    file_of(worker_root, os.getpid(), {RETRIES: 10.0})
    assert files.read()["task"].values == {RETRIES: 10.0}
    with monkeypatch.context() as broken:
        broken.setattr(counter_files, "_read", lambda _: None)
        assert files.read()["task"].values == {RETRIES: 10.0}
    assert files.read()["task"].values == {RETRIES: 10.0}


def test_file_that_cannot_be_removed_is_counted_once(worker_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = CounterFiles(str(worker_root))
    file_of(worker_root, NO_PROCESS, {RETRIES: 10.0})

    def refuse(_: Path) -> None:
        raise PermissionError

    monkeypatch.setattr(type(worker_root), "unlink", refuse)
    for _ in range(3):
        assert files.read()["task"].values == {RETRIES: 10.0}


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.EIO, errno.EACCES])
def test_folder_that_cannot_be_listed_for_once_ends_no_process(
    worker_root: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    files, counters = CounterFiles(str(worker_root)), Counters()
    file = CounterFile(counters)
    counters.add(RETRIES, 100)
    file.write()
    assert files.read() == {"driver": ProcessTotals(1, {RETRIES: 100})}

    def refuse(_: Path) -> Iterator[Path]:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as broken:
        broken.setattr(type(worker_root), "iterdir", refuse)
        assert files.read() == {"driver": ProcessTotals(1, {RETRIES: 100})}
    assert files.read() == {"driver": ProcessTotals(1, {RETRIES: 100})}
    counters.add(RETRIES)
    file.write()
    assert files.read() == {"driver": ProcessTotals(1, {RETRIES: 101})}


def test_file_that_is_one_too_many_ends_no_process(worker_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counter_files, "_MAX_FILES", 2)
    files, folder = CounterFiles(str(worker_root)), worker_root / FOLDER
    content = file_of(worker_root, os.getpid(), {RETRIES: 1}).read_bytes()
    for name in ("y1", "y2"):
        (folder / f"{name}.json").write_bytes(content)
    # The first two of three, by name.
    assert files.read() == {"task": ProcessTotals(2, {RETRIES: 2})}
    (folder / "0.json").write_bytes(content)
    for _ in range(2):
        assert files.read() == {"task": ProcessTotals(2, {RETRIES: 2})}
    assert len(list(folder.iterdir())) == 4
