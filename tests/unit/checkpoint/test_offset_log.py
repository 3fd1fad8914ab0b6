"""Logs as Spark writes them. The forms of versions 1 and 2 were taken from checkpoints of PySpark 4.2.0 and 4.3.0."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.texts import said
from pyspark_kafka.checkpoint import CheckpointFiles, CommitLog, OffsetSeqLog
from pyspark_kafka.errors import CheckpointError

METADATA = '{"batchWatermarkMs":0,"batchTimestampMs":1795259946539,"conf":{"spark.sql.shuffle.partitions":"2"}}'


@pytest.fixture
def files(tmp_path: Path) -> CheckpointFiles:
    return CheckpointFiles(str(tmp_path))


def written(files: CheckpointFiles, text: str, batch_id: int = 0, log: str = "offsets") -> None:
    files.replace(f"{log}/{batch_id}", text.encode())


@pytest.mark.parametrize("place", ["missing", "empty", "another"])
def test_a_place_without_a_checkpoint_is_an_error(tmp_path: Path, place: str) -> None:
    location = tmp_path / place
    if place != "missing":
        location.mkdir()
    if place == "another":
        # The directory above a checkpoint: the commonest slip.
        (location / "query" / "offsets").mkdir(parents=True)
        (location / "query" / "offsets" / "0").write_text("v1")
        (location / "notes.txt").write_text("of somebody")
    files = CheckpointFiles(str(location))
    for ask in (OffsetSeqLog(files).latest, OffsetSeqLog(files).batch_ids, CommitLog(files).latest):
        with pytest.raises(CheckpointError) as caught:
            ask()
        assert said(caught.value) == (
            f"[CHECKPOINT_NOT_FOUND] There is no checkpoint of a streaming query at {location}: no file metadata, and "
            "no batch in offsets or commits. Nothing was read. Hint: Use the checkpointLocation of the query, not a "
            "directory above or below it."
        )


def test_a_checkpoint_without_batches_has_none(files: CheckpointFiles) -> None:
    # What Spark writes first.
    files.replace("metadata", b"{}")
    assert OffsetSeqLog(files).latest() is None
    assert OffsetSeqLog(files).get(0) is None
    assert OffsetSeqLog(files).batch_ids() == []
    assert CommitLog(files).latest() is None


def test_version_1_has_a_line_for_each_source(files: CheckpointFiles) -> None:
    written(files, f'v1\n{METADATA}\n{{"t":{{"0":5}}}}\n-\n7', 3)
    batch = OffsetSeqLog(files).get(3)
    assert batch is not None
    assert batch.batch_id == 3
    assert batch.metadata["batchTimestampMs"] == 1795259946539
    assert batch.offsets == ('{"t":{"0":5}}', None, "7")
    assert batch.sources == ("0", "1", "2")
    assert [batch.of_source(number) for number in range(3)] == list(batch.offsets)


def test_version_2_names_the_sources_in_any_order(files: CheckpointFiles) -> None:
    written(files, f'v2\n{METADATA}\n10:-\nevents_in:{{"t":{{"0":5}}}}\n9:0')
    batch = OffsetSeqLog(files).get(0)
    assert batch is not None
    assert batch.sources == ("events_in", "9", "10")
    assert batch.of_source("events_in") == '{"t":{"0":5}}'
    assert batch.of_source("10") is None
    with pytest.raises(CheckpointError, match=r"Batch 0 has no source '0'; its sources are events_in, 9, 10\."):
        batch.of_source()


def test_metadata_may_be_an_empty_line(files: CheckpointFiles) -> None:
    written(files, 'v1\n\n{"t":{"0":5}}')
    batch = OffsetSeqLog(files).get(0)
    assert batch is not None
    assert batch.metadata == {}
    assert batch.offsets == ('{"t":{"0":5}}',)


def test_a_line_separator_within_an_offset_ends_no_line(files: CheckpointFiles) -> None:
    written(files, f'v1\n{METADATA}\n{{"t":"\u2028"}}\n')
    batch = OffsetSeqLog(files).get(0)
    assert batch is not None
    assert batch.offsets == ('{"t":"\u2028"}',)


def test_the_latest_batch_is_the_one_of_the_highest_number(files: CheckpointFiles) -> None:
    for batch_id in (9, 10, 8):
        written(files, f"v1\n{METADATA}\n{batch_id}", batch_id)
    for other in ("011", "11.compact", "11.uuid.tmp", "x", "-1", "9" * 20):
        files.create(f"offsets/{other}", b"")
    log = OffsetSeqLog(files)
    assert log.batch_ids() == [8, 9, 10]
    latest = log.latest()
    assert latest is not None
    assert (latest.batch_id, latest.offsets) == (10, ("10",))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_commits_of_every_known_version_are_read(files: CheckpointFiles, version: int) -> None:
    for batch_id in (0, 1):
        written(files, f'v{version}\n{{"nextBatchWatermarkMs":{batch_id}}}', batch_id, "commits")
    log = CommitLog(files)
    latest = log.latest()
    assert latest is not None
    assert (latest.batch_id, latest.metadata) == (1, {"nextBatchWatermarkMs": 1})
    assert log.batch_ids() == [0, 1]
    assert log.get(2) is None


@pytest.mark.parametrize(("log", "reads"), [(OffsetSeqLog, "v1 to v2"), (CommitLog, "v1 to v3")])
def test_a_newer_version_is_refused_with_a_sentence(
    files: CheckpointFiles, tmp_path: Path, log: type[OffsetSeqLog | CommitLog], reads: str
) -> None:
    name = "offsets" if log is OffsetSeqLog else "commits"
    written(files, "v99999\n{}\n{}", 7, name)
    with pytest.raises(CheckpointError) as caught:
        log(files).latest()
    assert said(caught.value) == (
        f"[CHECKPOINT_VERSION] {name}/7 of checkpoint {tmp_path} was written by a newer version: its format is v99999, "
        f"and this version reads {reads}. Nothing was read. Hint: Use the version that wrote the checkpoint, or a "
        "newer one."
    )


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it does not begin with a version such as v1, but with ''"),
        (b"v0\n{}\n-", "but with 'v0'"),
        (b"v1x\n{}\n-", "but with 'v1x'"),
        (b'{"t":{}}\n', "but with"),
        (b"v1", "it ends after its version"),
        (b"v1\n", "it ends after its version"),
        (b"v1\n{\n-", "its metadata are not JSON"),
        (b"v1\n" + b"[" * 100_000 + b"\n-", "its metadata are not JSON"),
        (b"v1\n" + b"9" * 5_000 + b"\n-", "its metadata are not"),
        (b"v1\n[]\n-", "its metadata are not a JSON object"),
        (b"v1\n{}\n\xff", "it is not text in UTF-8"),
        (b"v2\n{}\nno name", "a line does not begin with the name of a source: 'no name'"),
        (b"v2\n{}\n:{}", "a line does not begin with the name of a source"),
        (b"v2\n{}\na:1\na:2", "it has two offsets of source 'a'"),
    ],
)
def test_malformed_files_are_refused_with_file_and_reason(
    files: CheckpointFiles, tmp_path: Path, data: bytes, reason: str
) -> None:
    files.create("offsets/0", data)
    with pytest.raises(CheckpointError) as caught:
        OffsetSeqLog(files).get(0)
    text = str(caught.value)
    assert text.startswith(f"[CHECKPOINT_LOG_INVALID] offsets/0 of checkpoint {tmp_path} is malformed: ")
    assert reason in text
