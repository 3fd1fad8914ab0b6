from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_kafka.testing.java import _build_launcher


def test_launcher_that_others_have_planted_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_KAFKA_CACHE", str(tmp_path))
    launcher = _build_launcher(Path("/usr/bin/java")) / "bin" / "java"
    expected, written_at = launcher.read_text(), launcher.stat().st_mtime_ns
    _build_launcher(Path("/usr/bin/java"))
    assert launcher.stat().st_mtime_ns == written_at
    launcher.write_text("#!/bin/sh\nexec evil")
    _build_launcher(Path("/usr/bin/java"))
    assert launcher.read_text() == expected
