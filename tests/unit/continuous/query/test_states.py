"""The versions of states as the driver knows them: what runs begin with, and what it finds of what tasks wrote."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.continuous.epochs.coordinator import LaneReport
from pyspark_kafka.continuous.epochs.epoch_files import EpochFiles
from pyspark_kafka.continuous.query.states import QueryStates
from pyspark_kafka.continuous.state.version_files import VersionFiles
from pyspark_kafka.errors import ContractError, StateError

if TYPE_CHECKING:
    from pathlib import Path

_HEADS = '{"0/t-0":"0-a.1"}'
_REPORT = LaneReport(0, 0, "{}", "{}", state=_HEADS)


@pytest.fixture
def files(tmp_path: Path) -> CheckpointFiles:
    return CheckpointFiles(str(tmp_path))


def states_of(files: CheckpointFiles, column: str = "n") -> QueryStates:
    step: Any = SimpleNamespace(ttl_ms=0, state_schema=pa.schema([(column, pa.int64())]))
    return QueryStates([step], files, EpochFiles(files))


def test_version_that_the_driver_does_not_find_is_an_error(files: CheckpointFiles) -> None:
    states = states_of(files)
    states.open(0)
    with pytest.raises(StateError, match=r"STATE_NOT_SHARED.*the driver does not find it there"):
        states.after([_REPORT])
    VersionFiles(files).write_delta("0/t-0", "0-a", 0, b"of this test")
    assert "0-a.1" in states.after([_REPORT])


def test_next_run_begins_with_the_versions_of_the_last_epoch(files: CheckpointFiles) -> None:
    VersionFiles(files).write_delta("0/t-0", "0-a", 0, b"of this test")
    states = states_of(files)
    states.open(0)
    epochs = EpochFiles(files)
    text = states.after([_REPORT])
    epochs.prepare(0, "{}", ["m"], 1, text)
    epochs.commit(0, text)
    again = states_of(files)
    again.open(1)
    stream: Any = SimpleNamespace(keyGroups=lambda _: ["t-0"])
    partition: Any = None
    plan = again.plan(stream, [partition])
    assert plan is not None
    assert plan.heads == {"0/t-0": "0-a.1"}
    with pytest.raises(ContractError, match="returns each key group once"):
        again.plan(stream, [partition, partition])
    with pytest.raises(StateError, match="STATE_SCHEMA_CHANGED"):
        states_of(files, "m").open(1)
    with pytest.raises(StateError, match="STATE_EPOCH_MISSING"):
        states_of(files).open(5)
