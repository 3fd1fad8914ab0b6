"""The local directories of lanes: whose they are, and who removes them."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any

import pytest

from pyspark_kafka.continuous.state import local_directory
from pyspark_kafka.continuous.state.local_directory import LocalDirectory


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    return tmp_path


def test_directory_of_a_killed_process_is_removed_and_others_stay(place: Path) -> None:
    killed = place / "pyspark-kafka-state-killed"
    killed.mkdir()
    (killed / "lock").touch()
    lives = LocalDirectory()
    assert not killed.exists()
    other = LocalDirectory()
    assert lives.path.is_dir()
    assert lives.path.parent == place
    for each in (lives, other):
        each.remove()
    assert list(place.iterdir()) == []


def test_directory_that_is_being_made_stays_when_another_process_looks(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = fcntl.flock
    polled: list[bool] = []

    def look_before(descriptor: Any, operation: int) -> None:
        if not polled:
            polled.append(True)
            local_directory._remove_left(place)
        lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", look_before)
    made = LocalDirectory()
    assert made.path.is_dir()
    made.remove()


def test_directory_of_somebody_else_stays_and_links_are_not_followed(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = place / "ours"
    ours.mkdir()
    (ours / "lock").touch()
    (place / "pyspark-kafka-state-link").symlink_to(ours)
    inner = place / "pyspark-kafka-state-inner"
    inner.mkdir()
    (inner / "lock").symlink_to(ours / "lock")
    local_directory._remove_left(place)
    assert (ours / "lock").exists()
    assert inner.exists()
    foreign = place / "pyspark-kafka-state-foreign"
    foreign.mkdir()
    (foreign / "lock").touch()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    local_directory._remove_left(place)
    assert foreign.exists()
