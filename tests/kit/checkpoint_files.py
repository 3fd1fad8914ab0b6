"""Checkpoints as Spark writes them: made of the ends of their batches, and read back."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kit.waiting import PATIENCE_S
from pyspark_kafka.checkpoint import CheckpointFiles

QUERY_ID = "6a1c1f0e-9d0a-4c7e-8a37-0f7f5e2c9b11"
# The time of batch 0, and from one batch to the next.
PLANNED_MS, STEP_MS = 1_767_225_600_000, 10_000


def offsets_text(
    number: int,
    ends: Sequence[Mapping[str, Mapping[str, int]] | str | None],
    *,
    version: int = 1,
    watermark_ms: int = 0,
    conf: Mapping[str, str] | None = None,
) -> str:
    """Return the content of `offsets/<number>`: an end for each source, as a value or as text."""
    metadata = {
        "batchWatermarkMs": watermark_ms,
        "batchTimestampMs": PLANNED_MS + number * STEP_MS,
        "conf": {"spark.sql.shuffle.partitions": "2"} if conf is None else conf,
    }
    texts = ["-" if end is None else end if isinstance(end, str) else json.dumps(end) for end in ends]
    lines = texts if version == 1 else [f"{name}:{text}" for name, text in enumerate(texts)]
    return "\n".join([f"v{version}", json.dumps(metadata, separators=(",", ":")), *lines])


def write_checkpoint(
    location: Path,
    ends: Sequence[Mapping[str, Mapping[str, int]] | str],
    *,
    finished: int | None = None,
    first: int = 0,
    version: int = 1,
    initial: Mapping[str, Mapping[str, int]] | None = None,
) -> Path:
    """Write the checkpoint of a query with one source.

    Args:
        location: its directory, made if it is missing.
        ends: where each batch ends.
        finished: how many of the batches are finished; all of them without it.
        first: the number of the first batch.
        version: of the offset log.
        initial: where batch 0 begins; not kept without it.

    Returns:
        The location.
    """
    for directory in ("offsets", "commits", "sources/0"):
        (location / directory).mkdir(parents=True, exist_ok=True)
    (location / "metadata").write_text(json.dumps({"id": QUERY_ID}))
    for place, end in enumerate(ends):
        (location / "offsets" / str(first + place)).write_text(offsets_text(first + place, [end], version=version))
        if finished is None or place < finished:
            (location / "commits" / str(first + place)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    if initial is not None:
        (location / "sources" / "0" / "0").write_bytes(b"\0v1\n" + json.dumps(initial).encode())
    return location


def batches_of(checkpoint: Path | str, log: str = "offsets") -> list[int]:
    """Return the batches, or the epochs, in one of the logs of a checkpoint."""
    folder = Path(checkpoint, log)
    return sorted(int(each.name) for each in folder.glob("*") if each.name.isdecimal()) if folder.is_dir() else []


def end_of_batch(checkpoint: Path | str, batch: int) -> dict[str, dict[int, int]]:
    """Return, from the offset log, where a batch of a query with one source ends."""
    text = Path(checkpoint, "offsets", str(batch)).read_text().splitlines()[2]
    # A first batch says where it starts in a partition "00".
    return {
        topic: {int(name): end for name, end in partitions.items() if name == str(int(name))}
        for topic, partitions in json.loads(text).items()
    }


def check_that_one_creator_wins(files: CheckpointFiles, creators: int) -> None:
    """Let threads create a file at the same time, and check that one succeeds, and that its content is there."""
    at_once = threading.Barrier(creators)

    def create(number: int) -> bool:
        at_once.wait(PATIENCE_S)
        return files.create("offsets/0", b"%d" % number)

    with ThreadPoolExecutor(creators) as pool:
        won = list(pool.map(create, range(creators)))
    assert won.count(True) == 1
    assert files.read("offsets/0") == b"%d" % won.index(True)
