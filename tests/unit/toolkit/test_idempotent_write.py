"""Epochs that are committed once."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pyspark_kafka.connector import StreamingDataWriterFactory, WriterCommitMessage
from pyspark_kafka.errors import CheckpointError, CommitConflictError, ContractError
from pyspark_kafka.toolkit import CommitState, EpochLog, EpochRecord, FileEpochLog, IdempotentStreamingWrite


@dataclass(frozen=True)
class Wrote(WriterCommitMessage):
    """What a task of the tests reports."""

    rows: int
    file: str = "a"


class Target(IdempotentStreamingWrite):
    """Notes each commit; dies in one if a test asks for it."""

    def __init__(self, log: EpochLog, **settings: int) -> None:
        super().__init__(log, **settings)
        self.commits: list[tuple[int, int, bool]] = []
        self.dies = False

    def commit_once(
        self, epoch_id: int, commit_id: str, messages: Sequence[WriterCommitMessage], *, in_doubt: bool
    ) -> None:
        assert commit_id
        if self.dies:
            raise KeyboardInterrupt
        self.commits.append((epoch_id, sum(message.rows for message in messages), in_doubt))  # type: ignore[attr-defined]

    def createStreamingWriterFactory(self, *_: Any) -> StreamingDataWriterFactory:
        raise NotImplementedError

    def abort(self, epoch_id: int, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Do nothing."""


@pytest.fixture
def log(tmp_path: Path) -> FileEpochLog:
    return FileEpochLog.at(str(tmp_path))


def test_same_commit_again_is_no_commit(log: FileEpochLog) -> None:
    target = Target(log)
    for _ in range(3):
        target.commit(0, [Wrote(1), Wrote(2)])
    assert target.commits == [(0, 3, False)]


def test_order_of_tasks_makes_no_other_commit(log: FileEpochLog) -> None:
    target = Target(log)
    target.commit(0, [Wrote(1), Wrote(2)])
    target.commit(0, [Wrote(2), Wrote(1)])
    assert len(target.commits) == 1


def test_commit_is_recognized_by_another_driver(log: FileEpochLog, tmp_path: Path) -> None:
    Target(log).commit(0, [Wrote(1)])
    after = Target(FileEpochLog.at(str(tmp_path)))
    after.commit(0, [Wrote(1)])
    after.commit(1, [Wrote(5)])
    assert after.commits == [(1, 5, False)]


def test_other_rows_for_a_committed_epoch_are_an_error(log: FileEpochLog) -> None:
    target = Target(log)
    target.commit(0, [Wrote(1)])
    with pytest.raises(
        CommitConflictError, match=r"\[COMMIT_CONFLICT\] Epoch 0 is committed as \w{16}… and is now"
    ) as raised:
        target.commit(0, [Wrote(2)])
    assert "Nothing was committed" in str(raised.value)
    assert len(target.commits) == 1


def test_driver_that_dies_in_a_commit_leaves_it_in_doubt(log: FileEpochLog) -> None:
    target = Target(log)
    target.dies = True
    with pytest.raises(KeyboardInterrupt):
        target.commit(4, [Wrote(7)])
    after = Target(log)
    with pytest.raises(CommitConflictError, match="Epoch 4 is prepared"):
        after.commit(4, [Wrote(8)])
    after.commit(4, [Wrote(7)])
    after.commit(4, [Wrote(7)])
    assert after.commits == [(4, 7, True)]


def test_old_epochs_are_cleaned_up_and_are_then_an_error(log: FileEpochLog, tmp_path: Path) -> None:
    target = Target(log, kept_epochs=2)
    for epoch in range(5):
        target.commit(epoch, [Wrote(epoch)])
    assert sorted(path.name for path in (tmp_path / "commits-of-sink").iterdir()) == ["3", "4"]
    with pytest.raises(CommitConflictError, match="COMMIT_FORGOTTEN"):
        target.commit(1, [Wrote(1)])


def test_files_of_others_beside_the_log_stay(log: FileEpochLog, tmp_path: Path) -> None:
    target = Target(log, kept_epochs=2)
    target.commit(0, [Wrote(0)])
    (tmp_path / "commits-of-sink" / "notes.txt").write_text("mine")
    for epoch in range(1, 4):
        target.commit(epoch, [Wrote(epoch)])
    assert (tmp_path / "commits-of-sink" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    "damage", [b"", b"{", b'{"v": 1}', b'{"v": 9, "id": "a", "state": "committed"}', b"[" * 100_000]
)
def test_record_that_is_cut_short_is_an_error_and_no_commit(log: FileEpochLog, tmp_path: Path, damage: bytes) -> None:
    target = Target(log)
    target.commit(0, [Wrote(1)])
    (tmp_path / "commits-of-sink" / "0").write_bytes(damage)
    with pytest.raises(CheckpointError, match="COMMIT_RECORD_INVALID"):
        target.commit(0, [Wrote(1)])
    assert len(target.commits) == 1


class Opaque(WriterCommitMessage):
    """A message that is not a dataclass."""


@dataclass
class Unordered(WriterCommitMessage):
    """A message whose fields have no JSON."""

    files: set[str] = field(default_factory=lambda: {"a", "b"})


@pytest.mark.parametrize("message", [Opaque(), Unordered()])
def test_messages_that_have_no_stable_form_are_an_error(log: FileEpochLog, message: WriterCommitMessage) -> None:
    with pytest.raises(ContractError, match=r"Target.commit_id\(\) needs messages that are dataclasses"):
        Target(log).commit(0, [message])


def test_own_commit_id_may_leave_out_what_differs_between_attempts(log: FileEpochLog) -> None:
    class ByRows(Target):
        def commit_id(self, epoch_id: int, messages: Sequence[WriterCommitMessage]) -> str:
            return f"{epoch_id}:{sum(message.rows for message in messages)}"  # type: ignore[attr-defined]

    target = ByRows(log)
    target.commit(0, [Wrote(3, "attempt-1")])
    target.commit(0, [Wrote(3, "attempt-2")])
    assert len(target.commits) == 1


def test_write_pickles_with_its_log(log: FileEpochLog) -> None:
    Target(log).commit(0, [Wrote(1)])
    copied: Target = pickle.loads(pickle.dumps(Target(log)))  # noqa: S301 - our own bytes
    copied.commit(0, [Wrote(1)])
    assert copied.commits == []


def test_log_returns_what_was_written(log: FileEpochLog) -> None:
    assert (log.find(3), log.oldest()) == (None, None)
    for record in (EpochRecord(3, "x", CommitState.PREPARED), EpochRecord(3, "x", CommitState.COMMITTED)):
        log.write(record)
        assert log.find(3) == record
    assert log.oldest() == 3
