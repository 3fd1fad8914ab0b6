"""State by key that is larger than what the process keeps of it. Linux: looks into /proc."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_PROGRAM = """
import re, sys
from pathlib import Path
from pyspark_kafka.toolkit import KeyedState

EPOCHS, KEYS = 30, 5_000

def memory():
    # Pages of files that are mapped do not count.
    return int(re.search(r"RssAnon:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024

with KeyedState(sys.argv[1], cache_bytes=1024 * 1024) as state:
    most = 0
    for epoch in range(EPOCHS):
        # Keys of one epoch are spread over all of the state.
        state.merge(epoch, {b"%06d" % (number * EPOCHS + epoch): b"x" * 300 for number in range(KEYS)})
        state.snapshot() if epoch % 10 == 0 else None
        first = memory() if epoch == 0 else first
        most = max(most, memory())
    rows = 0
    for rows, _ in enumerate(state.items(), 1):
        most = max(most, memory()) if rows % 10_000 == 0 else most
    assert rows == len(state) == EPOCHS * KEYS
    print(most - first)
"""


def test_state_of_45_mb_takes_less_than_a_third_of_it_in_memory(tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(tmp_path)], capture_output=True, text=True, check=False, timeout=150
    )
    assert found.returncode == 0, found.stderr
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) > 45_000_000
    assert int(found.stdout) < 15_000_000
