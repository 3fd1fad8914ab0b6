"""Changes of states are on disk before their epoch is reported."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.continuous.state.version_files import VersionFiles


def test_parts_of_changes_are_synced_when_they_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: set[int] = set()
    monkeypatch.setattr(os, "fsync", lambda file: synced.add(os.fstat(file).st_ino))
    VersionFiles(CheckpointFiles(str(tmp_path))).write_deltas(
        [("events-0", "1", part, b"changes") for part in range(3)]
    )
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 3
    assert {path.stat().st_ino for path in (*files, files[0].parent)} <= synced
