"""The chain of files of a state: each is read once, some of them before they are asked for."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.checkpoint import state_files as module
from pyspark_kafka.checkpoint.state_files import VersionReader, encoded_changes
from pyspark_kafka.checkpoint.state_names import STATES, StateVersion
from pyspark_kafka.errors import CheckpointError, StateError

DIRECTORY = "0/t-0"
_SECONDS = 20


@pytest.fixture
def files(tmp_path: Path) -> CheckpointFiles:
    return CheckpointFiles(str(tmp_path))


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as made:
        yield made


def write(files: CheckpointFiles, *versions: str, begin: str = "") -> StateVersion:
    """Write versions that follow one another, each with its name as a key; return the last one."""
    before = begin
    for text in versions:
        version = StateVersion.parse(text)
        for part in range(version.parts):
            data = encoded_changes([(f"{text}/{part}".encode(), b"v")], {"previous": before})
            files.replace(f"{STATES}/{DIRECTORY}/{version.stem}.{part}.delta", data)
        before = text
    return StateVersion.parse(before)


def keys(states: VersionReader, head: StateVersion) -> list[str]:
    chain = states.chain(DIRECTORY, head)
    files = states.read(DIRECTORY, chain)
    return [key.decode() for file in files for key, _ in states.changes(DIRECTORY, file)]


class Reads:
    """Counts what is read, and waits until several files are being read at the same time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, meet: int = 0) -> None:
        self.names: Counter[str] = Counter()
        self._waiting, self._meet = 0, meet
        self._met, self._lock = threading.Event(), threading.Lock()
        read = CheckpointFiles.read

        def counted(files: CheckpointFiles, name: str) -> bytes | None:
            with self._lock:
                self.names[name.rpartition("/")[2]] += 1
                self._waiting += 1
                if self._waiting >= self._meet:
                    self._met.set()
            assert self._met.wait(_SECONDS), "the reads are one after the other"
            return read(files, name)

        monkeypatch.setattr(CheckpointFiles, "read", counted)


def test_files_of_a_version_are_read_once_and_eight_at_a_time(
    files: CheckpointFiles, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"{number}-ab.{1 + number % 2}" for number in range(20)]
    head = write(files, *texts)
    reads = Reads(monkeypatch, meet=8)
    found = keys(VersionReader(files, pool), head)
    assert found == [f"{text}/{part}" for text in texts for part in range(StateVersion.parse(text).parts)]
    assert sorted(reads.names.items()) == sorted((f"{t[:-2]}.{p}.delta", 1) for t in texts for p in range(int(t[-1])))


def test_files_that_are_too_large_to_be_kept_are_read_again(
    files: CheckpointFiles, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MAX_KEPT_BYTES", 1_000)
    texts = [f"{number}-ab.1" for number in range(20)]
    head = write(files, *texts)
    reads = Reads(monkeypatch)
    assert keys(VersionReader(files, pool), head) == [f"{text}/0" for text in texts]
    assert 1 < Counter(reads.names.values())[2] < 20


@pytest.mark.parametrize("ahead", [1, 2, 8])
def test_versions_are_found_whatever_their_names_suggest(
    files: CheckpointFiles, pool: ThreadPoolExecutor, ahead: int
) -> None:
    """A run can begin behind the versions that it continues; others have written versions that nobody names."""
    texts = ["3-a.1", "9-a.1", "9-ac1.1", "9-ac10.1", "5-b.2", "6-b.1", "4-c.1", "12-c.1"]
    write(files, *(f"{number}-z.1" for number in range(14)))
    head = write(files, *texts)
    for states in (VersionReader(files), VersionReader(files, pool, ahead)):
        assert [key.rpartition("/")[0] for key in keys(states, head) if not key.endswith("/1")] == texts


def test_chain_ends_at_the_last_whole_state(files: CheckpointFiles, pool: ThreadPoolExecutor) -> None:
    head = write(files, *(f"{number}-a.1" for number in range(6)))
    for number in (2, 3):
        files.replace(f"{STATES}/{DIRECTORY}/{number}-a.whole", json.dumps({"parts": 2}).encode())
        for part in range(2):
            data = encoded_changes([(f"all {number} {part}".encode(), b"v")], {})
            files.replace(f"{STATES}/{DIRECTORY}/{number}-a.{part}.all", data)
    assert keys(VersionReader(files, pool), head) == ["all 3 0", "all 3 1", "4-a.1/0", "5-a.1/0"]
    assert keys(VersionReader(files, pool), StateVersion(2, "a", 1)) == ["all 2 0", "all 2 1"]


def test_temporary_files_of_the_directory_are_named(files: CheckpointFiles, tmp_path: Path) -> None:
    head = write(files, "0-a.1")
    names = ".1-a.0.delta.0123456789abcdef.tmp", ".0-a.0.delta.crc"
    for name in names:
        (tmp_path / STATES / DIRECTORY / name).touch()
    assert VersionReader(files).chain(DIRECTORY, head).temporary == names[:1]


@pytest.mark.parametrize("name", ["0-a.0.delta", "1-a.whole", "1-a.0.all", "2-a.0.delta"])
@pytest.mark.parametrize("data", [None, b"", b"x" * 40], ids=["missing", "empty", "damaged"])
def test_file_that_cannot_be_used_is_an_error_that_names_it(
    files: CheckpointFiles, pool: ThreadPoolExecutor, name: str, data: bytes | None
) -> None:
    head = write(files, "0-a.1", "1-a.1", "2-a.1")
    path = f"{STATES}/{DIRECTORY}/{name}"
    if name.startswith("1-a"):
        files.replace(f"{STATES}/{DIRECTORY}/1-a.0.all", encoded_changes([(b"k", b"v")], {}))
        files.replace(f"{STATES}/{DIRECTORY}/1-a.whole", b'{"parts": 1}')
    if data is None:
        files.delete(path)
    else:
        files.replace(path, data)
    if (name, data) == ("1-a.whole", None):
        # Nothing of the whole state counts before its end is there.
        assert keys(VersionReader(files, pool), head) == ["0-a.1/0", "1-a.1/0", "2-a.1/0"]
        return
    with pytest.raises(StateError, match=name) as caught:
        keys(VersionReader(files, pool), head)
    assert caught.value.condition == ("STATE_VERSION_MISSING" if data is None else "STATE_VERSION_DAMAGED")


def test_checkpoint_that_cannot_be_read_is_an_outage_and_no_damage(
    files: CheckpointFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = write(files, "0-a.1")
    files.replace(f"{STATES}/{DIRECTORY}/0-a.whole", b'{"parts": 0}')

    def fails(*_: Any) -> None:
        raise CheckpointError("no answer", condition="CHECKPOINT_IO", retriable=True)

    monkeypatch.setattr(CheckpointFiles, "read", fails)
    with pytest.raises(CheckpointError) as caught:
        VersionReader(files).chain(DIRECTORY, head)
    assert caught.value.condition == "CHECKPOINT_IO"
