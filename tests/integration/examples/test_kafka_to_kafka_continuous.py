"""The example that copies a topic continuously, as a program of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from kit.independent_client import Record, consume, produce
from kit.pointers import REPO

if TYPE_CHECKING:
    from pathlib import Path

    from kit.fixtures.broker import TopicMaker

_PROGRAM = REPO / "examples" / "kafka_to_kafka_continuous.py"


def test_topic_is_copied(bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path) -> None:
    source, target = make_topic(partitions=2), make_topic()
    produce(bootstrap_servers, source, [Record(b"k", f"item {n}".encode()) for n in range(9)])
    done = subprocess.run(
        [sys.executable, str(_PROGRAM), bootstrap_servers, source, target, str(tmp_path / "checkpoint"), "--once"],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True, text=True, timeout=150, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    assert "9 records copied" in done.stdout
    assert sorted((record.value or b"").decode() for record in consume(bootstrap_servers, target, 9)) == [
        f"ITEM {n}" for n in range(9)
    ]
