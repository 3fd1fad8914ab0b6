"""The roles of which a scrape has counters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkFiles

from pyspark_kafka._base.counters import LOST_OFFSETS, Counters
from pyspark_kafka._connector.spark.processes.counter_files import ProcessTotals
from pyspark_kafka._ops.metrics.export import exporter
from pyspark_kafka._ops.metrics.export.exporter import Processes
from pyspark_kafka._ops.metrics.export.process_families import process_families


class ClassicSession:
    """Stands for a session of classic Spark; nobody asks its JVM."""

    _jsparkSession = None  # noqa: N815 - PySpark's name

    def __init__(self, master: str) -> None:
        self.master = master

    @property
    def sparkContext(self) -> ClassicSession:  # noqa: N802 - Spark's name
        return self


@pytest.fixture
def processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Processes:
    """The processes of a program that has counted nothing itself."""
    monkeypatch.setattr(SparkFiles, "getRootDirectory", lambda: str(tmp_path))
    monkeypatch.setattr(exporter, "COUNTERS", Counters())
    return Processes()


@pytest.mark.parametrize(
    ("master", "roles"),
    [
        ("local", {"driver", "task"}),
        ("local[*]", {"driver", "task"}),
        ("local[2,4]", {"driver", "task"}),
        ("local-cluster[2,1,1024]", {"driver"}),
        ("spark://cluster:7077", {"driver"}),
    ],
)
def test_processes_that_are_all_seen_have_zeros_before_they_count(
    processes: Processes, master: str, roles: set[str]
) -> None:
    session: Any = ClassicSession(master)
    assert processes.totals() == {}
    processes.join(session)
    found = processes.totals()
    assert found == {role: ProcessTotals() for role in roles}
    (lost,) = (each for each in process_families(found) if each.name == f"pyspark_kafka_{LOST_OFFSETS}")
    assert lost.samples == {(role,): 0.0 for role in roles}


def test_processes_of_a_server_have_no_zeros(processes: Processes) -> None:
    session: Any = object()
    processes.join(session)
    assert processes.totals() == {}
