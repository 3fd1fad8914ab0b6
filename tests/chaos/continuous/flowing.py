"""The function of the continuous queries on a cluster in motion; runs in the workers."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from chaos.continuous.striking import started_at

SCHEMA = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("key", pa.binary()), ("value", pa.binary())])
WORKERS, RAISE, SLOW = "workers", "raise.", "slow"
_READ = ("topic", "partition", "offset", "timestamp", "key", "value", "_corrupt_record")
_SLOW_STEP_S = 0.1


class FlowCopy:
    """Copies each record, with where it was read and by whom; sends those that cannot be read to the dead letters.

    A run of the engine pickles it once, when the start of the run is known; the stamp of that moment names the run.

    Args:
        place: the folder of the query, where workers leave their ids and faults their files.
        out: the topic of the copies.
        dead: the topic of the dead letters.
        apart: of how many output partitions each lane writes to one only; 0: keys decide.
    """

    def __init__(self, place: str, out: str, dead: str, apart: int) -> None:
        self.place, self.out, self.dead, self.apart = place, out, dead, apart
        self.run: tuple[str, float] = ("", 0.0)

    def __getstate__(self) -> dict[str, Any]:
        """Stamp the run."""
        return {**self.__dict__, "run": (uuid.uuid4().hex[:8], time.time())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Leave the id of the process, and when it was started: ids are used again."""
        self.__dict__.update(state)
        beside = Path(self.place, f"worker.{os.getpid()}")
        beside.write_text(started_at(os.getpid()))
        beside.replace(Path(self.place, WORKERS, str(os.getpid())))

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Copy one epoch of a lane."""
        context = TaskContext.get()
        attempt = context.taskAttemptId() if context is not None else -1
        for batch in batches:
            rows = [self._row(attempt, row) for row in batch.select(_READ).to_pylist()]
            self._misbehave(batch)
            yield pa.RecordBatch.from_pylist(rows, schema=SCHEMA)

    def _row(self, attempt: int, row: dict[str, Any]) -> dict[str, Any]:
        bad = row["_corrupt_record"]
        value = row["value"] if bad is None else bad["rawValue"].decode(errors="surrogateescape")
        read_ms = int(row["timestamp"].timestamp() * 1000)
        said = [*self.run, attempt, row["topic"], row["partition"], row["offset"], read_ms, value]
        return {
            "topic": self.out if bad is None else self.dead,
            "partition": row["partition"] % self.apart if self.apart else None,
            "key": row["key"],
            "value": json.dumps(said).encode(),
        }

    def _misbehave(self, batch: pa.RecordBatch) -> None:
        place = Path(self.place)
        slow = place / SLOW
        lane = f"{batch.column('topic')[0].as_py()}-{batch.column('partition')[0].as_py()}"
        while slow.exists() and slow.read_text() == lane:
            time.sleep(_SLOW_STEP_S)
        for armed in place.glob(f"{RAISE}*"):
            try:
                armed.unlink()
            except FileNotFoundError:
                continue
            raise RuntimeError("a fault of the test: the function raises")
