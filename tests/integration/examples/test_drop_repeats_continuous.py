"""The example that drops repeated keys, as a program of its own that is started twice."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, consume, produce
from kit.pointers import REPO

pytestmark = pytest.mark.full("Examples")

_PROGRAM = REPO / "examples" / "drop_repeats_continuous.py"


def test_keys_are_let_through_once_over_two_starts(
    bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(partitions=2), make_topic()
    for numbers in (range(9), range(9, 30)):
        records = [Record(b"%d" % (n % 12), b"item %d" % n) for n in numbers]
        produce(bootstrap_servers, source, [*records, Record(None, b"without a key")])
        done = subprocess.run(
            [sys.executable, str(_PROGRAM), bootstrap_servers, source, target, str(tmp_path / "checkpoint"), "--once"],
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
            capture_output=True, text=True, timeout=290, check=False, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-4000:]
    assert sorted(record.value or b"" for record in consume(bootstrap_servers, target, 12)) == sorted(
        b"item %d" % n for n in range(12)
    )
