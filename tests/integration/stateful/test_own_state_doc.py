"""The program of docs/stateful.md with a state of its own, killed at every step and continued."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pyspark_kafka.toolkit import KeyedState

pytestmark = pytest.mark.full("Programs of the pages")

_DOC = Path(__file__).parents[3] / "docs" / "stateful.md"
(PROGRAM,) = (
    text for text in re.findall(r"```python\n(.*?)```", _DOC.read_text(), re.DOTALL) if "class Counts" in text
)
EPOCHS = 6
# Of each epoch: the key, the partition, and how many seconds before the newest row of its partition it was.
ROWS = [("a", "0", 0), ("b", "0", 100), ("a", "1", 0), ("b", "1", 29), ("late", "0", 150), ("late", "1", 95)]
# The other partition is behind by more than the allowed lateness.
BEHIND_S = 50
RUN = """
import os, signal, sys

place, die_at = sys.argv[1], sys.argv[2]

def step(name, do):
    def stepped(*args):
        at = f"{counts.epoch} {name}"
        if die_at == f"{at} before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = do(*args)
        if die_at == f"{at} after":
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return stepped

counts = Counts(place, ["0", "1"], 0)
replace = counts.files.replace

class Files:
    def replace(self, name, data):
        step(name.partition("/")[0], replace)(name, data)

counts.files = Files()
counts.state.merge = step("merge", counts.state.merge)
while counts.epoch < EPOCHS:
    newest = {"0": 1_000 + counts.epoch * 60, "1": 1_000 + counts.epoch * 60 - BEHIND_S}
    rows = [(key.encode(), partition, (newest[partition] - ago) * 1000) for key, partition, ago in ROWS]
    counts.process(pa.table(dict(zip(["key", "partition", "event_ms"], zip(*rows)))).to_batches()[0], counts.epoch)
print(counts.tracker.watermark_ms)
"""


def test_program_of_the_page_killed_at_every_step_counts_each_row_once(tmp_path: Path) -> None:
    text = f"{PROGRAM}\nEPOCHS, BEHIND_S, ROWS = {EPOCHS}, {BEHIND_S}, {ROWS!r}\n{RUN}"
    for point in ["1 late before", "2 merge before", "4 merge after"]:
        done = subprocess.run(
            [sys.executable, "-c", text, str(tmp_path), point], capture_output=True, text=True, check=False
        )
        assert done.returncode == -signal.SIGKILL, done.stderr
    done = subprocess.run([sys.executable, "-c", text, str(tmp_path), ""], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    newest = 1_000 + (EPOCHS - 1) * 60 - BEHIND_S
    assert int(done.stdout) == (newest - 30) * 1000
    # In the first epoch nothing is late.
    with KeyedState(tmp_path / "state") as state:
        assert {key: int.from_bytes(value, "big") for key, value in state.items()} == {
            b"a": 2 * EPOCHS,
            b"b": 2 * EPOCHS,
            b"late": 2,
        }
    late = Counter(row["key"] for file in (tmp_path / "late").iterdir() for row in pq.read_table(file).to_pylist())
    assert late == {b"late": 2 * (EPOCHS - 1)}
