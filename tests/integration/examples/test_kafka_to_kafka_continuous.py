"""The example that copies a topic continuously, as a program of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, consume_committed, produce
from kit.pointers import REPO
from kit.waiting import eventually

pytestmark = pytest.mark.full("Examples")

_PROGRAM = REPO / "examples" / "kafka_to_kafka_continuous.py"


_ENVIRONMENT = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}


def copied(servers: str, topic: str) -> list[str]:
    return sorted((record.value or b"").decode() for record in consume_committed(servers, topic))


def test_topic_is_copied_until_ctrl_c_and_on(bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path) -> None:
    source, target = make_topic(partitions=2), make_topic()
    program = [sys.executable, str(_PROGRAM), bootstrap_servers, source, target, str(tmp_path / "checkpoint")]
    produce(bootstrap_servers, source, [Record(b"k", f"item {n}".encode()) for n in range(9)])
    everything = [f"ITEM {n}" for n in range(9)]
    with (tmp_path / "errors").open("w") as errors:
        running = subprocess.Popen(program, env=_ENVIRONMENT, cwd=tmp_path, stdout=subprocess.PIPE, stderr=errors)
    try:
        eventually(lambda: copied(bootstrap_servers, target) == everything, 300)
        # While the epoch that has them runs, or just after.
        running.send_signal(signal.SIGINT)
        said, _ = running.communicate(timeout=300)
    finally:
        running.kill()
    found = (tmp_path / "errors").read_text()
    assert running.returncode == 0, found[-4000:]
    assert b"9 records copied" in said
    # Spark did not cancel the tasks.
    assert "CANCELLED" not in found
    assert "starts again" not in found
    produce(bootstrap_servers, source, [Record(b"k", b"item 9")])
    done = subprocess.run(
        [*program, "--once"], env=_ENVIRONMENT, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "1 records copied" in done.stdout
    eventually(lambda: copied(bootstrap_servers, target) == [*everything, "ITEM 9"])
