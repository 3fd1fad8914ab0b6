"""How many tasks a driver has room for, by the limits of its process."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from pyspark_kafka.continuous.channel.file_limit import file_limit, raise_file_limit, room_for_tasks


def limited(monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, *, granted: bool = True) -> list[int]:
    limits = [soft, hard]

    def change(_: int, wanted: tuple[int, int]) -> None:
        if not granted:
            raise ValueError("not allowed to raise maximum limit")
        limits[:] = wanted

    monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(limits))
    monkeypatch.setattr(resource, "setrlimit", change)
    monkeypatch.setattr(Path, "iterdir", lambda _: iter(range(24)))
    return limits


def test_soft_limit_is_raised_to_the_hard_one(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = limited(monkeypatch, 1_024, 4_096)
    assert room_for_tasks() == 900
    raise_file_limit()
    assert limits == [4_096, 4_096]
    assert room_for_tasks() == 3_972


def test_limit_that_cannot_be_raised_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, 100, resource.RLIM_INFINITY, granted=False)
    raise_file_limit()
    assert file_limit() == 100
    assert room_for_tasks() == 1, "it may be enough"


def test_process_without_a_limit_has_room_for_any_number_of_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    assert file_limit() is None
    assert room_for_tasks() is None
