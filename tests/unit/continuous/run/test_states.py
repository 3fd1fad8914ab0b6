"""The driver's side of states: the versions of the last committed epoch, whoever died when, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest

from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.checkpoint.state_names import CommittedHeads
from pyspark_kafka.connector import ContinuousStream
from pyspark_kafka.continuous.epochs.coordinator import LaneReport
from pyspark_kafka.continuous.epochs.epoch_files import EpochFiles
from pyspark_kafka.continuous.run.states import QueryStates
from pyspark_kafka.continuous.state.version_files import EPOCHS_KEPT, VersionFiles, delta_bytes
from pyspark_kafka.continuous.state.versions import StatePlan, fingerprint_of
from pyspark_kafka.continuous.task.stages import MapWithState, TimeMode
from pyspark_kafka.errors import CheckpointError, ConnectorError, ContractError, StateError

STEP = MapWithState(lambda rows, _: rows, pa.schema([]), pa.schema([("n", pa.int64())]), 0)


class Grouped(ContinuousStream):
    """A stream whose input partitions are their own key groups."""

    keyGroups = staticmethod(lambda partition: partition)


Grouped.__abstractmethods__ = frozenset()


def planned(states: QueryStates, *partitions: Sequence[str]) -> StatePlan:
    stream: Any = Grouped()  # type: ignore[abstract]
    plan = states.plan(stream, partitions)  # type: ignore[arg-type]
    assert plan is not None
    return plan


@pytest.fixture
def files(tmp_path: Path) -> CheckpointFiles:
    return CheckpointFiles(str(tmp_path))


@pytest.fixture
def epochs(files: CheckpointFiles) -> EpochFiles:
    return EpochFiles(files)


@pytest.fixture
def states(files: CheckpointFiles, epochs: EpochFiles) -> QueryStates:
    return QueryStates([STEP], files, epochs)


def report(files: CheckpointFiles, lane: int, epoch: int, group: str, *, is_written: bool = True) -> LaneReport:
    if is_written:
        VersionFiles(files).write_delta(f"0/{group}", f"{epoch}-w", 0, delta_bytes([(b"k", b"v")], None))
    return LaneReport(lane, epoch, "{}", "{}", state=f'{{"0/{group}":"{epoch}-w.1"}}')


def test_query_without_state_writes_and_reads_nothing(files: CheckpointFiles, epochs: EpochFiles) -> None:
    states = QueryStates([], files, epochs)
    states.open(5)
    assert states.plan(Grouped(), []) is None  # type: ignore[abstract]
    assert states.after([LaneReport(0, 5, "{}", "{}")]) == ""
    epochs.prepare(5, "{}", [], 0, "")
    epochs.write_commit(5, "")
    assert files.list("continuous/versions") == []


def test_versions_are_those_of_the_last_committed_epoch(
    files: CheckpointFiles, epochs: EpochFiles, states: QueryStates
) -> None:
    states.open(0)
    assert planned(states, ["t-0"], ["t-1"]).heads == {}
    text = states.after([report(files, 0, 0, "t-0"), LaneReport(1, 0, "{}", "{}")])
    epochs.prepare(0, "{}", [], 0, text)
    epochs.write_commit(0, text)
    states.committed(0, text)
    # An epoch that was reported, and whose driver died before it was prepared.
    states.after([report(files, 0, 1, "t-0"), report(files, 1, 1, "t-1")])
    again = QueryStates([STEP], files, epochs)
    again.open(1)
    plan = planned(again, ["t-1"], ["t-0", "t-2"])
    assert plan.heads == {"0/t-0": "0-w.1"}
    assert plan.key_groups == {0: ("t-1",), 1: ("t-0", "t-2")}
    assert plan.run != planned(again, ["t-0"]).run


def test_epoch_that_is_committed_again_has_the_versions_that_were_prepared(
    files: CheckpointFiles, epochs: EpochFiles, states: QueryStates
) -> None:
    states.open(0)
    epochs.prepare(0, "{}", [], 0, states.after([report(files, 0, 0, "t-0")]))
    # The next driver.
    epochs.write_commit(0, epochs.prepared_state(0))
    states.open(1)
    assert planned(states, ["t-0"]).heads == {"0/t-0": "0-w.1"}


def test_versions_of_old_epochs_are_removed(files: CheckpointFiles, states: QueryStates) -> None:
    epochs = EpochFiles(files, kept=2)
    for epoch in range(5):
        text = states.after([report(files, 0, epoch, "t-0")])
        epochs.prepare(epoch, "{}", [], 0, text)
        epochs.write_commit(epoch, text)
        states.committed(epoch, text)
    assert files.list("continuous/versions") == ["3", "4"]


def committed(states: QueryStates, epoch: int, *reports: LaneReport) -> dict[str, Any]:
    text = states.after(reports)
    states.committed(epoch, text)
    return dict(json.loads(text))


def test_state_of_a_topic_that_is_not_read_any_more_is_left_out_and_removed_later(
    files: CheckpointFiles, states: QueryStates
) -> None:
    states.open(0)
    planned(states, ["t-0"], ["u-0"])
    committed(states, 0, report(files, 0, 0, "t-0"), report(files, 1, 0, "u-0"))
    # The topic u was deleted.
    assert planned(states, ["t-0"]).heads == {"0/t-0": "0-w.1"}
    assert committed(states, 1, report(files, 0, 1, "t-0"))["heads"] == {"0/t-0": "1-w.1"}
    # An epoch that is kept can begin with it.
    last = committed(states, EPOCHS_KEPT, LaneReport(0, EPOCHS_KEPT, "{}", "{}"))
    assert last["gone"] == {"0/u-0": 1}
    assert files.list("continuous/state/0/u-0") == ["0-w.0.delta"]
    committed(states, EPOCHS_KEPT + 1, LaneReport(0, EPOCHS_KEPT + 1, "{}", "{}"))
    assert files.list("continuous/state/0/u-0") == []
    assert "gone" not in committed(states, EPOCHS_KEPT + 2, LaneReport(0, EPOCHS_KEPT + 2, "{}", "{}"))
    assert files.list("continuous/state/0/t-0") == ["0-w.0.delta", "1-w.0.delta"]


def test_state_of_a_topic_that_came_back_is_a_new_one_and_stays(files: CheckpointFiles, states: QueryStates) -> None:
    states.open(0)
    planned(states, ["t-0"], ["u-0"])
    committed(states, 0, report(files, 0, 0, "t-0"), report(files, 1, 0, "u-0"))
    planned(states, ["t-0"])
    committed(states, 1, LaneReport(0, 1, "{}", "{}"))
    # It is read from its beginning.
    assert planned(states, ["t-0"], ["u-0"]).heads == {"0/t-0": "0-w.1"}
    text = committed(states, 2, LaneReport(0, 2, "{}", "{}"), report(files, 1, 2, "u-0"))
    assert text["heads"] == {"0/t-0": "0-w.1", "0/u-0": "2-w.1"}
    assert "gone" not in text
    committed(states, 200, LaneReport(0, 200, "{}", "{}"), LaneReport(1, 200, "{}", "{}"))
    assert files.list("continuous/state/0/u-0") == ["0-w.0.delta", "2-w.0.delta"]


def test_epoch_is_committed_though_files_of_an_old_state_could_not_be_removed(
    files: CheckpointFiles, states: QueryStates, monkeypatch: pytest.MonkeyPatch
) -> None:
    states.open(0)
    planned(states, ["t-0"], ["u-0"])
    committed(states, 0, report(files, 0, 0, "t-0"), report(files, 1, 0, "u-0"))
    planned(states, ["t-0"])
    committed(states, 1, LaneReport(0, 1, "{}", "{}"))
    for retriable in (True, False):
        with monkeypatch.context() as broken, nullcontext() if retriable else pytest.raises(CheckpointError):
            error = CheckpointError("slow down", condition="CHECKPOINT_IO", retriable=retriable)
            broken.setattr(CheckpointFiles, "delete", Mock(side_effect=error))
            committed(states, EPOCHS_KEPT + 1, LaneReport(0, EPOCHS_KEPT + 1, "{}", "{}"))
    assert files.list("continuous/state/0/u-0") == ["0-w.0.delta"]
    committed(states, EPOCHS_KEPT + 2, LaneReport(0, EPOCHS_KEPT + 2, "{}", "{}"))
    assert files.list("continuous/state/0/u-0") == []


def test_removal_of_a_state_spares_what_another_driver_has_written_since(
    files: CheckpointFiles, states: QueryStates
) -> None:
    states.open(0)
    planned(states, ["t-0"], ["u-0"])
    committed(states, 0, report(files, 0, 0, "t-0"), report(files, 1, 0, "u-0"))
    planned(states, ["t-0"])
    committed(states, 1, LaneReport(0, 1, "{}", "{}"))
    VersionFiles(files).write_delta("0/u-0", "300-x", 0, delta_bytes([(b"k", b"v")], None))
    committed(states, 301, LaneReport(0, 301, "{}", "{}"))
    assert files.list("continuous/state/0/u-0") == ["300-x.0.delta"]


def test_version_that_the_driver_does_not_find_is_an_error(files: CheckpointFiles, states: QueryStates) -> None:
    states.open(0)
    with pytest.raises(StateError) as caught:
        states.after([report(files, 0, 0, "t-0", is_written=False)])
    assert caught.value.condition == "STATE_NOT_SHARED"
    # Some shares show what others have written a little later; failures in a row end the query.
    assert caught.value.retriable


@pytest.mark.parametrize(
    ("content", "error", "condition"),
    [
        (None, StateError, "STATE_EPOCH_MISSING"),
        (b"{}", CheckpointError, "CHECKPOINT_LOG_INVALID"),
        (b"\xff", CheckpointError, "CHECKPOINT_LOG_INVALID"),
        (b'{"v":1,"schemas":["n int32"],"heads":{}}', StateError, "STATE_SCHEMA_CHANGED"),
        (b'{"v":1,"schemas":["n int64","n int64"],"heads":{}}', StateError, "STATE_SCHEMA_CHANGED"),
    ],
)
def test_checkpoint_without_the_state_of_the_query_is_refused(
    files: CheckpointFiles, states: QueryStates, content: bytes | None, error: type[ConnectorError], condition: str
) -> None:
    if content is not None:
        files.replace("continuous/versions/4", content)
    with pytest.raises(error) as caught:
        states.open(5)
    assert caught.value.condition == condition


def test_other_column_of_the_time_is_refused_and_another_delay_is_not(
    files: CheckpointFiles, epochs: EpochFiles
) -> None:
    """The watermark of one column says nothing about another one: rows on time would be late."""

    def states_of(column: str, delay_ms: int) -> QueryStates:
        mode = TimeMode(lambda *_: None, column, delay_ms, lambda _: None)
        return QueryStates([replace(STEP, time_mode=mode)], files, epochs)

    first = states_of("created", 10)
    first.open(0)
    planned(first, ["t-0"])
    committed(first, 0, report(files, 0, 0, "t-0"))
    files.replace("continuous/versions/0", first.after([LaneReport(0, 0, "{}", "{}")]).encode())
    states_of("created", 20).open(1)
    with pytest.raises(StateError, match=r"timers of event time changed.* has .*event time created") as caught:
        states_of("changed", 10).open(1)
    assert caught.value.condition == "STATE_SCHEMA_CHANGED"
    assert "column of the watermark" in (caught.value.hint or "")


@pytest.mark.parametrize("partitions", [(["a"], ["a"]), (["a", "a"],), ([],)])
def test_key_group_that_is_not_in_one_lane_is_refused(states: QueryStates, partitions: tuple[list[str], ...]) -> None:
    with pytest.raises(ContractError):
        planned(states, *partitions)


def committed_text(*heads: str | None, schemas: Sequence[str] = ("n int64",)) -> str:
    return CommittedHeads(fingerprint_of(schemas), heads).text()


def test_versions_that_were_committed_with_positions_replace_those_of_the_checkpoint(
    files: CheckpointFiles, states: QueryStates
) -> None:
    states.open(0)
    planned(states, ["t-0"], ["t-1"], ["u-0"])
    committed(states, 0, *(report(files, lane, 0, group) for lane, group in enumerate(["t-0", "t-1", "u-0"])))
    report(files, 0, 3, "t-0")
    states.take_committed({"t-0": committed_text("3-w.1"), "u-0": None})
    assert planned(states, ["t-0", "t-1", "u-0"]).heads == {"0/t-0": "3-w.1", "0/t-1": "0-w.1"}
    # The next epoch of the checkpoint has them, whether they have changed since or not.
    text = committed(states, 1, LaneReport(0, 1, "{}", "{}"), LaneReport(1, 1, "{}", "{}"))
    assert text["heads"] == {"0/t-0": "3-w.1", "0/t-1": "0-w.1"}


@pytest.mark.parametrize(
    ("text", "error", "condition"),
    [
        ("", StateError, "STATE_EPOCH_MISSING"),
        ("abc,../x", CheckpointError, "CHECKPOINT_LOG_INVALID"),
        (committed_text("3-w.1", schemas=["n int32"]), StateError, "STATE_SCHEMA_CHANGED"),
        (committed_text("3-w.1", None), StateError, "STATE_SCHEMA_CHANGED"),
        (committed_text("3-w.1"), StateError, "STATE_VERSION_MISSING"),
    ],
)
def test_position_without_the_state_of_the_query_is_refused(
    states: QueryStates, text: str, error: type[ConnectorError], condition: str
) -> None:
    states.open(0)
    with pytest.raises(error) as caught:
        states.take_committed({"t-0": text})
    assert caught.value.condition == condition
