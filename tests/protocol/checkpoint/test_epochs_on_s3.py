"""The checkpoint of a continuous query on an object store: one driver wins each file, and an epoch takes few calls."""

from __future__ import annotations

import json
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from kit.checkpoint_files import check_that_one_creator_wins
from kit.waiting import PATIENCE_S
from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.continuous.epochs.epoch_files import EpochFiles
from pyspark_kafka.continuous.epochs.recovery import recover
from pyspark_kafka.errors import CheckpointError

pytest.importorskip("obstore", reason="the extra object-stores")
pytest.importorskip("moto", reason="a local S3 server")
from collections.abc import Iterator
from pathlib import Path

from kit.fakes.object_store import ObjectStore


@pytest.fixture
def store() -> Iterator[ObjectStore]:
    with ObjectStore(f"checkpoints-{uuid.uuid4().hex}") as store:
        yield store


@pytest.fixture
def files(store: ObjectStore) -> CheckpointFiles:
    return CheckpointFiles(store.uri("query"))


def offset(end: int) -> str:
    return f'{{"t":{{"0":{end}}}}}'


def run(epochs: EpochFiles, numbers: range) -> None:
    for number in numbers:
        epochs.prepare(number, offset(20 * (number + 1)), ["{}"], 0)
        epochs.write_commit(number)


def test_driver_that_was_replaced_does_not_write_over_the_epoch_of_its_successor(
    store: ObjectStore, files: CheckpointFiles
) -> None:
    former, successor = EpochFiles(files), EpochFiles(files)
    former.take_over("former")
    run(former, range(5))

    def take_over(kind: str, key: str) -> None:
        if (kind, key) == ("PUT", "query/offsets/5"):
            store.before = lambda *_: None
            successor.take_over("successor")
            assert recover(files, successor).next_epoch == 5
            successor.prepare(5, offset(150), ["of the successor"], 0)
            successor.write_commit(5)

    store.before = take_over
    with pytest.raises(CheckpointError, match=r"offsets/5 .* was written by another query"):
        former.prepare(5, offset(200), ["of the former"], 0)
    # The successor dies before its next epoch.
    assert recover(files, EpochFiles(files)).start == offset(150)


def test_messages_of_an_unfinished_epoch_are_those_of_the_driver_that_wrote_its_offsets(
    store: ObjectStore, files: CheckpointFiles
) -> None:
    former, successor = EpochFiles(files), EpochFiles(files)
    former.take_over("former")

    def win(kind: str, key: str) -> None:
        if (kind, key) == ("PUT", "query/offsets/0"):
            store.before = lambda *_: None
            successor.take_over("successor")
            successor.prepare(0, offset(7), ["of the successor"], 0)

    store.before = win
    with pytest.raises(CheckpointError, match=r"offsets/0 .* was written by another query"):
        former.prepare(0, offset(7), ["of the former"], 0)
    # The successor dies before it has committed.
    unfinished = recover(files, EpochFiles(files)).unfinished
    assert unfinished is not None
    assert unfinished.messages == ("of the successor",)


def test_rows_of_every_epoch_follow_one_another_whoever_of_two_drivers_writes_it(files: CheckpointFiles) -> None:
    """Both drivers think that they own the checkpoint, and read different numbers of rows in an epoch."""
    sink: dict[int, tuple[int, int]] = {}
    lost = [0, 0]

    def drive(number: int) -> None:
        epochs = EpochFiles(files)
        for _ in range(1_000):
            if len(sink) >= 6:
                return
            try:
                found = recover(files, epochs)
                begin = 0 if found.start is None else json.loads(found.start)["t"]["0"]
                end = begin + 10 + number
                if found.unfinished is not None:
                    # As a sink that is idempotent by epoch.
                    first, last = json.loads(found.unfinished.messages[0])
                    sink.setdefault(found.unfinished.epoch, (first, last))
                    epochs.write_commit(found.unfinished.epoch)
                epochs.prepare(found.next_epoch, offset(end), [json.dumps([begin, end])], 0)
                sink.setdefault(found.next_epoch, (begin, end))
                epochs.write_commit(found.next_epoch)
            except CheckpointError:
                # Also from a look at a checkpoint that the other one changes meanwhile, again and again.
                lost[number] += 1

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(drive, range(2)))
    assert len(sink) >= 6
    ranges = [rows for _, rows in sorted(sink.items())]
    assert [begin for begin, _ in ranges] == [0, *(end for _, end in ranges[:-1])]
    assert sum(lost) > 0


def test_one_of_many_creators_of_a_file_wins(files: CheckpointFiles) -> None:
    check_that_one_creator_wins(files, 8)


def test_file_whose_response_was_lost_counts_as_created(store: ObjectStore, files: CheckpointFiles) -> None:
    store.lost.add("query/offsets/0")
    assert files.create("offsets/0", b"ours")
    store.lost.add("query/offsets/0")
    assert not files.create("offsets/0", b"ours")


def test_epoch_takes_five_rounds_of_calls(store: ObjectStore, files: CheckpointFiles) -> None:
    epochs = EpochFiles(files, kept=2)
    epochs.take_over("run")
    for number in range(4):
        epochs.prepare(number, offset(number), ["{}"] * 4, 0, "state")
        epochs.write_commit(number, "state")
    calls: list[str] = []
    first = threading.Barrier(2)

    def note(kind: str, key: str) -> None:
        # One DELETE names several files, and is of the bucket.
        name = key.removeprefix("query/").partition("-")[0] if key.startswith("query/") else "files"
        calls.append(f"{kind} {name}")
        if len(calls) <= 2:
            # Calls that are made one after the other do not meet.
            first.wait(PATIENCE_S)

    store.before = note
    epochs.prepare(4, offset(4), ["{}"] * 4, 0, "state")
    epochs.write_commit(4, "state")
    assert set(calls[:2]) == {"GET continuous/owner", "PUT continuous/messages/4"}
    # The last one removes the messages, and three files of the epoch that is too old.
    assert calls[2:] == ["PUT offsets/4", "PUT continuous/versions/4", "PUT commits/4", "DELETE files"]
    assert files.list("offsets") == files.list("commits") == files.list("continuous/versions") == ["3", "4"]
    assert files.list("continuous/messages") == []


def test_location_is_checked_with_four_calls_that_leave_nothing(store: ObjectStore, files: CheckpointFiles) -> None:
    store.take()
    files.check_decides()
    assert store.take().total() == 4
    assert files.scan().hidden == ()


def test_store_that_ignores_conditions_is_refused(store: ObjectStore, files: CheckpointFiles) -> None:
    store.ignores_conditions = True
    with pytest.raises(CheckpointError, match="The store ignores the condition of a write") as raised:
        files.check_decides()
    assert raised.value.condition == "CHECKPOINT_NOT_EXCLUSIVE"
    assert files.scan().hidden == ()


def test_file_is_read_up_to_its_bound(files: CheckpointFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark_kafka.checkpoint.files.MAX_FILE_BYTES", 10)
    files.replace("offsets/0", b"x" * 10)
    assert files.read("offsets/0") == b"x" * 10
    files.replace("offsets/0", b"x" * 11)
    with pytest.raises(CheckpointError, match="has more than 10 bytes"):
        files.read("offsets/0")


def test_copy_replaces_a_file_as_a_whole(files: CheckpointFiles, tmp_path: Path) -> None:
    local = CheckpointFiles(str(tmp_path))
    local.replace("state/0", b"of the other location")
    files.replace("state/0", b"former")
    assert files.copy_from(local, "state/0")
    assert files.read("state/0") == b"of the other location"
    assert files.scan("state").files == ("0",)
    assert files.scan("state").hidden == ()


def test_bucket_that_is_not_there_is_an_error_that_names_the_file(store: ObjectStore) -> None:
    files = CheckpointFiles(store.uri("query").replace("@checkpoints-", "@no-such-"))
    with pytest.raises(CheckpointError, match=r"Cannot write offsets/0 of checkpoint s3://…@no-such-") as raised:
        files.create("offsets/0", b"")
    assert "not-a-secret" not in str(raised.value)
