"""tools/smoke.py, which continuous integration runs on macOS and Windows: what it does needs nothing of Unix alone."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import smoke
from kit.pointers import REPO

GOLDEN = REPO / "tests" / "golden" / "batches"
# Removes what Python has on Unix only, after the import of libraries that know about Windows.
AS_ON_WINDOWS = """
import multiprocessing, os, select, signal, socket, subprocess, sys, tempfile
import numpy, pyarrow, rich.console, typer
from pathlib import Path

for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
for module, names in {
    os: ("fork", "geteuid", "getuid", "killpg", "register_at_fork", "sched_getaffinity", "setsid"),
    select: ("epoll", "poll"),
    signal: ("SIGALRM", "SIGHUP", "SIGKILL", "pthread_kill", "setitimer"),
    socket: ("AF_UNIX",),
}.items():
    for name in names:
        if hasattr(module, name):
            delattr(module, name)

import smoke
print(smoke.decode_batches(Path(sys.argv[1])))
# What a read and a write load.
import pyspark_kafka._client.client.cluster.pool, pyspark_kafka._client.client.fetch.fetcher
import pyspark_kafka._client.client.produce.pool, pyspark_kafka._connector.table.arrow_read
from pyspark_kafka.__main__ import main
sys.argv = ["pyspark-kafka", "--help"]
main()
"""


def test_help_and_record_batches_need_nothing_of_unix() -> None:
    done = subprocess.run(
        [sys.executable, "-c", AS_ON_WINDOWS, str(GOLDEN)],
        cwd=REPO / "tools", capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    records, _, text = done.stdout.partition("\n")
    assert int(records) > 100
    assert "Usage: pyspark-kafka" in text


def test_record_that_is_missing_is_noticed(tmp_path: Path) -> None:
    for suffix in (".bin", ".json"):
        shutil.copy(GOLDEN / f"java-4.3.0-codec-lz4{suffix}", tmp_path)
    description = tmp_path / "java-4.3.0-codec-lz4.json"
    told = json.loads(description.read_text())
    assert smoke.decode_batches(tmp_path) == len(told["read_uncommitted"])
    description.write_text(json.dumps({**told, "read_uncommitted": [*told["read_uncommitted"], 37]}))
    with pytest.raises(SystemExit, match=r"java-4\.3\.0-codec-lz4: offsets "):
        smoke.decode_batches(tmp_path)
