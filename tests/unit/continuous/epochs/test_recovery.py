"""Where a query continues, for each point at which a driver can die."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyspark_kafka.checkpoint import CheckpointFiles, CommitLog, OffsetSeqLog
from pyspark_kafka.continuous.epochs.epoch_files import EpochFiles
from pyspark_kafka.continuous.epochs.recovery import Recovered, UnfinishedEpoch, recover
from pyspark_kafka.errors import CheckpointError


@pytest.fixture
def files(tmp_path: Path) -> CheckpointFiles:
    return CheckpointFiles(str(tmp_path))


@pytest.fixture
def epochs(files: CheckpointFiles) -> EpochFiles:
    return EpochFiles(files)


def test_new_query_begins_with_epoch_0(files: CheckpointFiles, epochs: EpochFiles) -> None:
    epochs.query_id()
    assert recover(files, epochs) == Recovered(0, None)


def test_query_continues_after_its_last_committed_epoch(files: CheckpointFiles, epochs: EpochFiles) -> None:
    for number in range(3):
        epochs.prepare(number, f'{{"t":{{"0":{number}}}}}', ["{}"], 1)
        epochs.write_commit(number)
    assert recover(files, epochs) == Recovered(3, '{"t":{"0":2}}')


def test_epoch_that_was_prepared_is_committed_again_with_its_messages(
    files: CheckpointFiles, epochs: EpochFiles
) -> None:
    epochs.prepare(0, '{"a":1}', ['{"rows":1}', '{"rows":2}'], 1)
    assert recover(files, epochs) == Recovered(1, '{"a":1}', UnfinishedEpoch(0, ('{"rows":1}', '{"rows":2}')))


def test_messages_without_an_offset_are_those_of_a_driver_that_died_before(
    files: CheckpointFiles, epochs: EpochFiles
) -> None:
    epochs.prepare(0, '{"a":1}', ["{}"], 1)
    epochs.write_commit(0)
    epochs.prepare(1, '{"a":2}', ["{}"], 1)
    files.delete("offsets/1")
    assert recover(files, epochs) == Recovered(1, '{"a":1}')
    epochs.prepare(1, '{"a":3}', ['{"rows":3}'], 1)
    assert recover(files, epochs) == Recovered(2, '{"a":3}', UnfinishedEpoch(1, ('{"rows":3}',)))


def test_micro_batch_that_is_not_committed_is_refused(files: CheckpointFiles, epochs: EpochFiles) -> None:
    files.create("offsets/0", b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}\n{"a":1}')
    with pytest.raises(CheckpointError, match=r"Micro-batch 0 .* not committed"):
        recover(files, epochs)


def test_messages_of_another_end_do_not_finish_a_micro_batch(files: CheckpointFiles, epochs: EpochFiles) -> None:
    epochs.prepare(0, '{"a":1}', ["{}"], 1)
    files.replace("offsets/0", b'v1\n{}\n{"a":9}')
    with pytest.raises(CheckpointError, match="Micro-batch 0"):
        recover(files, epochs)


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ({"commits/0": 'v1\n{"nextBatchWatermarkMs":0}'}, "no offsets/0"),
        ({"offsets/0": "v1\n{}\n{}", "offsets/1": "v1\n{}\n{}"}, "none of them is committed"),
        ({"offsets/0": "v1\n{}\n{}\n{}", "commits/0": "v1\n{}"}, "2 sources"),
        ({"offsets/0": "v1\n{}\n-", "commits/0": "v1\n{}"}, "no offset"),
    ],
    ids=["commit without offsets", "two open", "two sources", "no offset"],
)
def test_logs_that_contradict_one_another_are_refused(
    files: CheckpointFiles, epochs: EpochFiles, written: dict[str, str], problem: str
) -> None:
    for name, text in written.items():
        files.create(name, text.encode())
    with pytest.raises(CheckpointError, match=problem):
        recover(files, epochs)


def test_epoch_that_is_committed_while_it_is_looked_at_is_no_contradiction(
    files: CheckpointFiles, epochs: EpochFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    epochs.prepare(0, '{"a":1}', ["{}"], 123)
    look = EpochFiles.prepared_messages

    def committed_meanwhile(self: EpochFiles, epoch: int, offset: str) -> list[str] | None:
        monkeypatch.undo()
        epochs.write_commit(0)
        return look(self, epoch, offset)

    monkeypatch.setattr(EpochFiles, "prepared_messages", committed_meanwhile)
    assert recover(files, EpochFiles(files)) == Recovered(1, '{"a":1}')


def test_logs_are_those_that_spark_reads(files: CheckpointFiles, epochs: EpochFiles) -> None:
    epochs.prepare(0, '{"a":1}', ["{}"], 123)
    epochs.write_commit(0)
    version, metadata, offset = (files.read("offsets/0") or b"").decode().split("\n")
    assert (version, offset) == ("v1", '{"a":1}')
    known = json.loads(metadata)
    # Spark reads the members that it knows.
    assert known.pop("messages")
    assert known == {"batchWatermarkMs": 0, "batchTimestampMs": 123, "conf": {}}
    assert files.read("commits/0") == b'v1\n{"nextBatchWatermarkMs":0}'
    assert OffsetSeqLog(files).batch_ids() == CommitLog(files).batch_ids() == [0]
