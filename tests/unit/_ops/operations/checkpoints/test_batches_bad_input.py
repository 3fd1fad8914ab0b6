"""Times in a checkpoint that are not times: what reads them continues without."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kit.checkpoint_files import write_checkpoint
from kit.programs.cli import invoke
from pyspark_kafka._ops.cli.lag.tables import heading
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import read_checkpoint
from pyspark_kafka._ops.operations.lag.positions import checkpoint_positions
from pyspark_kafka._ops.operations.lag.values import LagReport

LATEST = 253_402_300_800_000 - 86_400_000
NO_TIMES: list[object] = [
    *(10**power for power in (15, 16, 17, 20, 30, 308, 400, 4000)),
    *(-(10**power) for power in (0, 12, 17, 400)),
    LATEST,
    2**63,
    True,
    1.5,
    1e300,
    "1",
    None,
    [],
    {},
]


def with_times(location: Path, value: object) -> Path:
    write_checkpoint(location, [{"t": {"0": 5}}, {"t": {"0": 9}}, {"t": {"0": 12}}])
    for number in ("1", "2"):
        file = location / "offsets" / number
        version, metadata, *ends = file.read_text().split("\n")
        times = {"batchTimestampMs": value, "batchWatermarkMs": value}
        file.write_text("\n".join([version, json.dumps(json.loads(metadata) | times), *ends]))
    return location


@pytest.mark.parametrize("value", NO_TIMES, ids=lambda value: str(value)[:12])
def test_invalid_batch_times_do_not_fail_commands(tmp_path: Path, value: object) -> None:
    location = with_times(tmp_path / "checkpoint", value)
    batch = read_checkpoint(str(location)).history.get(1)
    assert batch is not None
    assert (batch.planned_at_ms, batch.watermark_ms) == (None, None)
    page = tmp_path / "page.html"
    for command in (
        ("checkpoint", "explain", str(location)),
        ("checkpoint", "show", str(location)),
        ("checkpoint", "verify", str(location)),
        ("report", str(location), "--html", str(page)),
    ):
        result = invoke(*command)
        assert result.exit_code in (0, 1, 3), (command, result.output)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert page.stat().st_size
    positions = checkpoint_positions(str(location))
    assert list(positions.partitions.values()) == [12]
    assert heading(LagReport(positions.origin, 0, positions.reached_at_ms, ())).startswith("Lag of checkpoint ")


@pytest.mark.parametrize("value", [1, LATEST - 1])
def test_last_times_that_are_times_are_kept_and_shown(tmp_path: Path, value: int) -> None:
    location = with_times(tmp_path / "checkpoint", value)
    batch = read_checkpoint(str(location)).history.get(1)
    assert batch is not None
    assert batch.planned_at_ms == value
    assert invoke("report", str(location), "--html", str(tmp_path / "page.html")).exit_code in (0, 3)


def test_file_with_a_time_before_1970_has_none(tmp_path: Path) -> None:
    location = write_checkpoint(tmp_path, [{"t": {"0": 5}}])
    os.utime(location / "commits" / "0", (-10, -10))
    assert read_checkpoint(str(location)).history.written_ms(0) is None
