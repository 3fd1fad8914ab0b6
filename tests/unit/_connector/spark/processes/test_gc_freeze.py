"""What is left out of the collections of garbage that PySpark's daemon runs between tasks, and when."""

from __future__ import annotations

import gc
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from pyspark_kafka._connector.spark.processes import gc_freeze as garbage


@pytest.fixture
def freezes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The calls at which objects were frozen."""
    found: list[int] = []
    monkeypatch.setattr(garbage, "_calls", 0)
    monkeypatch.setattr(gc, "freeze", lambda: found.append(garbage._calls))
    return found


def run_as(monkeypatch: pytest.MonkeyPatch, name: str | None) -> None:
    main = ModuleType("__main__")
    main.__spec__ = None if name is None else ModuleSpec(name, None)
    monkeypatch.setitem(sys.modules, "__main__", main)


def test_objects_are_frozen_at_few_tasks_after_the_first(monkeypatch: pytest.MonkeyPatch, freezes: list[int]) -> None:
    run_as(monkeypatch, "pyspark.daemon")
    for _ in range(1_000):
        garbage.freeze_gc()
    assert freezes == [2, 4, 8, 16, 32, 64, 128, 256, 512]


@pytest.mark.parametrize("name", [None, "pytest", "pyspark.worker"])
def test_nothing_is_frozen_outside_of_the_daemon(
    monkeypatch: pytest.MonkeyPatch, freezes: list[int], name: str | None
) -> None:
    run_as(monkeypatch, name)
    for _ in range(10):
        garbage.freeze_gc()
    assert freezes == []
