from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pyspark_kafka._client.client.reuse.learned_servers import LearnedServers, application_directory

BOOTSTRAP = (("boot", 9092),)
BROKERS = (("a", 1), ("b", 2))


def file_in(place: Path) -> Path:
    (found,) = place.iterdir()
    return found


def test_brokers_are_known_to_other_processes_of_the_application(tmp_path: Path) -> None:
    LearnedServers(tmp_path).put(BOOTSTRAP, BROKERS)
    assert LearnedServers(tmp_path).get(BOOTSTRAP) == BROKERS
    assert LearnedServers(tmp_path).get((("boot", 9093),)) == ()


def test_newest_brokers_are_of_whoever_has_learned_last(tmp_path: Path) -> None:
    first, second = LearnedServers(tmp_path), LearnedServers(tmp_path)
    first.put(BOOTSTRAP, BROKERS)
    second.put(BOOTSTRAP, (("c", 3),))
    assert (first.get(BOOTSTRAP), first.newest(BOOTSTRAP)) == (BROKERS, (("c", 3),))


def test_file_is_written_only_when_brokers_change(tmp_path: Path) -> None:
    learned = LearnedServers(tmp_path)
    learned.put(BOOTSTRAP, BROKERS)
    file_in(tmp_path).unlink()
    learned.put(BOOTSTRAP, BROKERS)
    learned.put(BOOTSTRAP, ())
    assert list(tmp_path.iterdir()) == []
    assert learned.get(BOOTSTRAP) == BROKERS


@pytest.mark.parametrize("directory", [None, Path("/nowhere/blockmgr-1")])
def test_brokers_are_remembered_without_a_directory(directory: Path | None) -> None:
    learned = LearnedServers(directory)
    assert learned.newest(BOOTSTRAP) == ()
    learned.put(BOOTSTRAP, BROKERS)
    assert learned.get(BOOTSTRAP) == learned.newest(BOOTSTRAP) == BROKERS


def test_number_of_clusters_is_bounded() -> None:
    learned = LearnedServers(None)
    for number in range(1_000):
        learned.put(((f"boot-{number}", 1),), BROKERS)
    known = [number for number in range(1_000) if learned.get(((f"boot-{number}", 1),))]
    assert known == list(range(1_000 - len(known), 1_000))
    assert len(known) == 64


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[1]", '[["a"]]', '[["", 1]]', '[["a", 0]]', '[["a", 65536]]', '[[1, "a"]]', "[" * 10_000, '"\\ud800'],
    ids=range(10),
)
def test_file_with_another_form_is_ignored(tmp_path: Path, text: str) -> None:
    LearnedServers(tmp_path).put(BOOTSTRAP, BROKERS)
    file_in(tmp_path).write_text(text)
    assert LearnedServers(tmp_path).get(BOOTSTRAP) == ()


def test_long_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    LearnedServers(tmp_path).put(BOOTSTRAP, BROKERS)
    file_in(tmp_path).write_text(json.dumps([["a", 1]] * 1_000_000))
    assert LearnedServers(tmp_path).get(BOOTSTRAP) == ()


def test_file_of_another_user_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    LearnedServers(tmp_path).put(BOOTSTRAP, BROKERS)
    monkeypatch.setattr(os, "geteuid", lambda: 4_711)
    assert LearnedServers(tmp_path).get(BOOTSTRAP) == ()


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_link_and_pipe_are_ignored(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "shared"
    place.mkdir()
    LearnedServers(place).put(BOOTSTRAP, BROKERS)
    path = file_in(place)
    moved = path.rename(tmp_path / "moved")
    if kind == "link":
        path.symlink_to(moved)
    else:
        os.mkfifo(path)
    assert LearnedServers(place).get(BOOTSTRAP) == ()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("", None),
        ("/data/1", None),
        ("/data/1/blockmgr-7f", Path("/data/1/blockmgr-7f")),
        ("/data/1,/data/2/blockmgr-7f,/data/3/blockmgr-8a", Path("/data/2/blockmgr-7f")),
    ],
)
def test_directory_is_one_that_spark_removes_with_the_application(
    monkeypatch: pytest.MonkeyPatch, value: str | None, expected: Path | None
) -> None:
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    if value is not None:
        monkeypatch.setenv("SPARK_LOCAL_DIRS", value)
    assert application_directory() == expected
