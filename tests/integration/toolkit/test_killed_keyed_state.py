"""State by key is sound after kill -9."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

from pyspark_kafka.toolkit import KeyedState

_MERGING = """
import struct, sys
from pyspark_kafka.toolkit import KeyedState, keyed_state

keyed_state._MAX_CHANGES, keyed_state._MIN_MOVED = 60, 20

def add(_, old, new):
    return struct.pack(">q", struct.unpack(">q", old)[0] + struct.unpack(">q", new)[0])

state = KeyedState(sys.argv[1])
for epoch in range(state.epoch_id + 1 if state.epoch_id is not None else 0, 100_000):
    state.merge(epoch, {b"%d" % key: struct.pack(">q", 1) for key in range(50)}, add)
    state.snapshot()
    print(epoch, flush=True)
"""


def test_kill_between_any_two_steps_leaves_whole_epochs(tmp_path: Path) -> None:
    done = -1
    for _ in range(4):
        program = subprocess.Popen([sys.executable, "-c", _MERGING, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert program.stdout is not None
        for line in program.stdout:
            done = int(line)
            # The lines that follow are of epochs that it merged before the signal came.
            if done % 23 == 22:
                os.kill(program.pid, signal.SIGKILL)
        program.stdout.close()
        program.wait()
        with KeyedState(tmp_path) as state:
            # What was said to be merged is there; the epoch in hand is there as a whole or not at all.
            assert state.epoch_id is not None
            assert state.epoch_id in (done, done + 1)
            assert {value for _, value in state.items()} == {struct.pack(">q", state.epoch_id + 1)}
            assert len(state) == 50
