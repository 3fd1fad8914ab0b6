"""Transactional ids of tasks: nobody else has them, and later micro-batches use them again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pyspark_kafka._connector.sink.tasks.ids import TaskIds


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "user" / "host"


def ids(place: Path, epoch: int, pool: str = "7.1") -> TaskIds:
    return TaskIds("sink", pool, epoch, place)


def test_id_is_lent_again_to_a_later_planning_only(place: Path) -> None:
    first = ids(place, 3)
    name = first.take_id()
    assert name.startswith("sink-7.1-")
    assert ids(place, 4).take_id() != name
    first.give_back(name)
    # It may be about to be committed.
    assert ids(place, 3).take_id() != name
    assert ids(place, 2).take_id() != name
    assert ids(place, 5, pool="7.9").take_id() != name
    assert ids(place, 5).take_id() == name
    assert ids(place, 5).take_id() != name


def test_foreign_file_in_the_directory_is_not_used_as_an_id(place: Path) -> None:
    first = ids(place, 3)
    first.give_back(first.take_id())
    (directory,) = place.iterdir()
    (file,) = directory.iterdir()
    file.rename(directory / "3-chosen")
    assert "chosen" not in ids(place, 4).take_id()


def test_directory_of_another_user_is_not_used_and_warned_of_once(
    place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first = ids(place, 3)
    name = first.take_id()
    first.give_back(name)
    assert not caplog.records
    uid = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: uid + 1)
    for epoch in (4, 5):
        later = ids(place, epoch)
        taken = later.take_id()
        assert taken != name
        later.give_back(taken)
    (warning,) = caplog.messages
    assert f"Make {place} a directory of this user alone" in warning


def test_ids_of_a_pool_that_nobody_has_used_for_a_week_are_forgotten(place: Path) -> None:
    old, new = ids(place, 3), ids(place, 3, pool="7.9")
    old.give_back(old.take_id())
    (directory,) = place.iterdir()
    os.utime(directory, (0, 0))
    new.give_back(new.take_id())
    assert not directory.exists()


def test_attempts_have_new_ids_without_a_directory(tmp_path: Path) -> None:
    (tmp_path / "user").touch()
    broken = ids(tmp_path / "user" / "host", 3)
    name = broken.take_id()
    broken.give_back(name)
    assert ids(tmp_path / "user" / "host", 4).take_id() != name
