from __future__ import annotations

import os
from pathlib import Path

import pytest

from kit.checkpoint_files import PLANNED_MS, QUERY_ID, STEP_MS, offsets_text, write_checkpoint
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._ops.operations.checkpoints.batches import MOVED
from pyspark_kafka._ops.operations.checkpoints.describe import describe_batch
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import read_checkpoint
from pyspark_kafka._ops.operations.checkpoints.summary import (
    CheckpointSummary,
    DirectorySummary,
    list_directories,
    read_summary,
)
from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.errors import CheckpointError

P0 = TopicPartition("t", 0)


def account_of(location: Path, max_batches: int | None = 10) -> CheckpointSummary:
    return read_summary(read_checkpoint(str(location)), max_batches=max_batches)


def written_at(location: Path, name: str, time_ms: int) -> None:
    os.utime(location / name, ns=(time_ms * 1_000_000, time_ms * 1_000_000))


def test_account_names_query_batches_and_positions(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": 5}}, {"t": {"0": 9}}, {"t": {"0": 12}}], finished=2)
    account = account_of(tmp_path)
    assert (account.query_id, account.begun, account.finished) == (QUERY_ID, 3, 2)
    assert (account.first, account.last_begun, account.last_finished, account.unfinished) == (0, 2, 1, 2)
    (source,) = account.sources
    assert source.position is not None
    assert source.end is not None
    assert (source.position.partitions[P0], source.end.partitions[P0]) == (9, 12)
    assert [batch.offsets for batch in account.batches] == [None, 4, 3]
    assert account.problems == ()


def test_first_batch_is_counted_from_where_the_query_began(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": 5}}], initial={"t": {"0": 2}})
    assert account_of(tmp_path).batches[0].offsets == 3


def test_first_batch_is_counted_from_the_start_that_its_end_carries(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ['{"t":{"00":1,"0":5}}'])
    assert account_of(tmp_path).batches[0].offsets == 4


def test_batch_of_a_rewind_reads_nothing_and_says_what_it_is(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": 500}}, {"t": {"0": 5, "1": 9}}])
    (tmp_path / "offsets" / "1").write_text(offsets_text(1, [{"t": {"0": 5, "1": 9}}], conf={MOVED: "true"}))
    last = account_of(tmp_path).batches[-1]
    assert (last.moved, last.offsets, last.new_partitions) == (True, 0, 0)
    assert describe_batch(last).endswith(
        "written by a fork or a rewind: it reads nothing, and the query continues where it ends."
    )


def test_new_partitions_are_counted_apart(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": 5}}, {"t": {"0": 7, "1": 900}, "u": {"0": 3}}])
    last = account_of(tmp_path).batches[-1]
    assert (last.offsets_by_topic, last.new_partitions) == ({"t": 2}, 2)


def test_batch_takes_from_its_plan_to_its_file_of_the_commit_log(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": 5}}, {"t": {"0": 9}}])
    written_at(tmp_path, "commits/0", PLANNED_MS + 1_500)
    written_at(tmp_path, "commits/1", PLANNED_MS + STEP_MS + 2_500)
    assert [batch.took_ms for batch in account_of(tmp_path).batches] == [1_500, 2_500]


def test_times_of_a_copy_are_not_taken_for_those_of_the_query(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": 5}}, {"t": {"0": 9}}, {"t": {"0": 9}}])
    written_at(tmp_path, "commits/0", PLANNED_MS + 500_000_000)
    written_at(tmp_path, "commits/1", PLANNED_MS - 1)
    written_at(tmp_path, "commits/2", PLANNED_MS + 2 * STEP_MS + 7)
    assert [batch.took_ms for batch in account_of(tmp_path).batches] == [None, None, 7]


def test_only_the_batches_that_are_asked_for_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": number}} for number in range(200)])
    asked: list[str] = []
    read = CheckpointFiles.read

    def noted(files: CheckpointFiles, name: str) -> bytes | None:
        asked.append(name)
        return read(files, name)

    monkeypatch.setattr(CheckpointFiles, "read", noted)
    account = account_of(tmp_path, 3)
    assert [batch.batch_id for batch in account.batches] == [197, 198, 199]
    assert [batch.offsets for batch in account.batches] == [1, 1, 1]
    assert {name for name in asked if name.startswith("offsets/")} == {
        f"offsets/{number}" for number in range(196, 200)
    }
    assert len(account_of(tmp_path, None).batches) == 200


def test_damaged_files_are_problems_of_the_account(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": 5}}, {"t": {"0": 9}}, {"t": {"0": 12}}])
    (tmp_path / "metadata").write_text("{")
    (tmp_path / "offsets" / "1").write_bytes(b"")
    (tmp_path / "sources" / "0" / "topic-ids").write_bytes(b"\xff")
    account = account_of(tmp_path)
    assert account.query_id is None
    assert [bool(batch.problem) for batch in account.batches] == [False, True, False]
    assert account.batches[2].offsets is None
    assert [text for text in account.problems if "offsets/1" in text]
    assert [text for text in account.problems if "topic-ids" in text]
    assert len(account.problems) == 3


def test_batch_that_is_removed_meanwhile_is_left_out(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": 5}}, {"t": {"0": 9}}, {"t": {"0": 12}}])
    checkpoint = read_checkpoint(str(tmp_path))
    (tmp_path / "offsets" / "0").unlink()
    (tmp_path / "commits" / "0").unlink()
    account = read_summary(checkpoint)
    assert [batch.batch_id for batch in account.batches] == [1, 2]
    assert account.problems == ()


def test_rights_that_are_missing_are_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": 5}}])
    checkpoint = read_checkpoint(str(tmp_path))

    def refused(_: CheckpointFiles, name: str) -> bytes:
        raise CheckpointError(f"Cannot read {name}: forbidden.", condition="CHECKPOINT_IO")

    monkeypatch.setattr(CheckpointFiles, "read", refused)
    account = read_summary(checkpoint)
    assert (account.begun, account.last_finished) == (1, 0)
    assert "Cannot read metadata: forbidden." in account.problems


def test_sources_of_other_programs_are_named(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [""])
    (tmp_path / "offsets" / "0").write_text(offsets_text(0, ['{"t":{"0":5}}', '{"logOffset":3}']))
    kafka, files = account_of(tmp_path).sources
    assert (kafka.other, kafka.spaced) == (None, False)
    assert (files.other, files.position, files.spaced) == ('{"logOffset":3}', None, None)


def test_directories_are_listed_with_their_hidden_files(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": 5}}])
    (tmp_path / "commits" / ".0.crc").write_bytes(b"")
    (tmp_path / "commits" / ".1.x.tmp").write_bytes(b"")
    found, problems = list_directories(read_checkpoint(str(tmp_path)))
    assert problems == ()
    assert found == (
        DirectorySummary(".", 1, 0, 0, 3),
        DirectorySummary("commits", 1, 1, 1, 0),
        DirectorySummary("offsets", 1, 0, 0, 0),
        DirectorySummary("sources", 0, 0, 0, 1),
    )
