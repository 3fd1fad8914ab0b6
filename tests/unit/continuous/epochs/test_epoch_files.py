"""What a continuous query keeps in its checkpoint."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.continuous.epochs.epoch_files import EpochFiles
from pyspark_kafka.continuous.epochs.recovery import recover
from pyspark_kafka.errors import CheckpointError

# JSON that parses only with a stack of this depth.
DEEP = b"[" * 100_000


@pytest.fixture
def files(tmp_path: Path) -> CheckpointFiles:
    return CheckpointFiles(str(tmp_path))


def run(epochs: EpochFiles, numbers: range) -> None:
    for number in numbers:
        epochs.prepare(number, "{}", [], 1)
        epochs.write_commit(number)


def raising(error: CheckpointError) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise error

    return fail


def test_query_keeps_its_id(files: CheckpointFiles) -> None:
    first = EpochFiles(files).query_id()
    assert str(uuid.UUID(first)) == first
    assert EpochFiles(files).query_id() == first


@pytest.mark.parametrize("content", [b"", b"[]", b'{"id":7}', b'{"id":"no uuid"}', b"\xff", DEEP])
def test_metadata_without_an_id_are_an_error(files: CheckpointFiles, content: bytes) -> None:
    files.create("metadata", content)
    with pytest.raises(CheckpointError, match=r"metadata of checkpoint .* is malformed"):
        EpochFiles(files).query_id()


def test_old_epochs_are_removed_and_the_newest_stay(files: CheckpointFiles) -> None:
    run(EpochFiles(files, kept=3), range(7))
    assert files.list("offsets") == files.list("commits") == ["4", "5", "6"]
    assert files.list("continuous/messages") == []


def test_next_run_removes_what_an_earlier_one_left(files: CheckpointFiles) -> None:
    run(EpochFiles(files, kept=100), range(7))
    run(EpochFiles(files, kept=2), range(7, 9))
    assert files.list("offsets") == files.list("commits") == ["7", "8"]


@pytest.mark.parametrize("failing", ["delete", "scan"])
def test_epoch_is_committed_though_old_files_could_not_be_removed(
    files: CheckpointFiles, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    epochs = EpochFiles(files, kept=2)
    with monkeypatch.context() as broken:
        broken.setattr(
            CheckpointFiles, failing, raising(CheckpointError("x", condition="CHECKPOINT_IO", retriable=True))
        )
        run(epochs, range(4))
    assert files.list("commits") == ["0", "1", "2", "3"]
    run(epochs, range(4, 5))
    assert files.list("commits") == files.list("offsets") == ["3", "4"]
    assert files.list("continuous/messages") == []


def test_files_that_a_killed_driver_was_writing_are_removed_with_their_epochs(tmp_path: Path) -> None:
    files = CheckpointFiles(str(tmp_path))
    run(EpochFiles(files), range(3))
    left = [f"{tmp_path}/{name}.0123456789abcdef.tmp" for name in ("continuous/messages/.2-ab", "offsets/.1")]
    for name in left:
        Path(name).write_bytes(b"x")
    run(EpochFiles(files, kept=2), range(3, 5))
    assert not [name for name in left if Path(name).exists()]


def test_missing_right_to_remove_old_files_is_an_error(files: CheckpointFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CheckpointFiles, "delete", raising(CheckpointError("x", condition="CHECKPOINT_IO")))
    with pytest.raises(CheckpointError):
        run(EpochFiles(files), range(1))


def test_messages_of_a_driver_that_died_within_a_commit_are_removed(files: CheckpointFiles) -> None:
    run(EpochFiles(files), range(3))
    files.replace("continuous/messages/2", b"{}")
    run(EpochFiles(files), range(3, 4))
    assert files.list("continuous/messages") == []


def test_second_query_on_the_checkpoint_ends_with_an_error(files: CheckpointFiles) -> None:
    first, second = EpochFiles(files), EpochFiles(files)
    first.prepare(0, "{}", [], 1)
    with pytest.raises(CheckpointError, match=r"offsets/0 .* was written by another query"):
        second.prepare(0, "{}", [], 1)
    first.write_commit(0)
    with pytest.raises(CheckpointError, match=r"commits/0 .* was written by another query"):
        second.write_commit(0)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"v":2,"offset":"{}","messages":[]}', b'{"v":1,"offset":"{}","messages":[1]}', DEEP]
)
def test_messages_that_were_cut_short_are_an_error(files: CheckpointFiles, content: bytes) -> None:
    files.create("continuous/messages/0", content)
    with pytest.raises(CheckpointError, match=r"continuous/messages/0 .* is malformed"):
        EpochFiles(files).prepared_messages(0, "{}")


def test_start_that_takes_a_checkpoint_over_ends_the_one_before(files: CheckpointFiles) -> None:
    first, second = EpochFiles(files), EpochFiles(files)
    first.take_over("first")
    run(first, range(2))
    second.take_over("second")
    second.check_owner()
    for call in (first.check_owner, lambda: first.prepare(2, "{}", [], 1)):
        with pytest.raises(
            CheckpointError, match="taken over by another start of the query, whose runId is second"
        ) as e:
            call()
        assert e.value.condition == "CHECKPOINT_CHANGED"
        assert not e.value.retriable
    run(second, range(2, 4))


def test_start_that_slept_through_many_epochs_does_not_write_one_that_was_removed(files: CheckpointFiles) -> None:
    first, second = EpochFiles(files, kept=2), EpochFiles(files, kept=2)
    first.take_over("first")
    run(first, range(2))
    second.take_over("second")
    run(second, range(2, 9))
    assert files.read("offsets/2") is None
    with pytest.raises(CheckpointError, match="taken over"):
        first.prepare(2, "{}", [], 1)
    assert files.read("offsets/2") is None


def test_owner_continues_behind_an_epoch_that_the_one_before_has_written_at_last(files: CheckpointFiles) -> None:
    first, second = EpochFiles(files), EpochFiles(files)
    first.take_over("first")
    run(first, range(2))
    first.prepare(2, '{"end":1}', ["of the first"], 1)
    second.take_over("second")
    with pytest.raises(CheckpointError, match=r"offsets/2 .* was written by another query") as raised:
        second.prepare(2, '{"end":2}', ["of the second"], 1)
    # It runs again from there.
    assert raised.value.retriable
    # What the other one needs, should it be committed again, is not written over.
    assert second.prepared_messages(2, '{"end":1}') == ["of the first"]
    first.write_commit(2)


@pytest.mark.parametrize("content", [b"", b"[]", b'{"v":1}', b"\xff", DEEP])
def test_owner_file_that_is_damaged_names_nobody(files: CheckpointFiles, content: bytes) -> None:
    epochs = EpochFiles(files)
    epochs.take_over("first")
    files.replace("continuous/owner", content)
    epochs.check_owner()
    run(epochs, range(1))


def test_epoch_is_not_written_where_the_checkpoint_is_gone(files: CheckpointFiles) -> None:
    """As where the file system is unmounted: the directory is there, and empty."""
    epochs = EpochFiles(files)
    epochs.take_over("first")
    run(epochs, range(2))
    shutil.rmtree(files.location)
    for call in (epochs.check_owner, lambda: epochs.prepare(2, "{}", [], 1)):
        with pytest.raises(CheckpointError, match=r"continuous/owner of .* is gone. Nothing was written") as raised:
            call()
        assert (raised.value.condition, raised.value.retriable) == ("CHECKPOINT_GONE", True)
    assert not Path(files.location).exists()


def test_offset_with_line_breaks_is_found_again(files: CheckpointFiles) -> None:
    epochs = EpochFiles(files)
    epochs.prepare(0, '{\n  "a": 1\n}', ["m"], 1)
    found = recover(files, epochs)
    assert json.loads(found.start or "") == {"a": 1}
    assert found.unfinished is not None
    assert found.unfinished.messages == ("m",)
