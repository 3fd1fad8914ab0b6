from __future__ import annotations

from pathlib import Path

import pytest

from kit.texts import said
from pyspark_kafka.checkpoint import CheckpointFiles, InitialOffsetLog, KafkaSourceOffset
from pyspark_kafka.checkpoint.initial_offset_log import decode, encode
from pyspark_kafka.errors import CheckpointError

OFFSET = KafkaSourceOffset.from_json('{"a":{"0":5,"10":7},"ü":{"0":0}}')


@pytest.fixture
def log(tmp_path: Path) -> InitialOffsetLog:
    return InitialOffsetLog(CheckpointFiles(str(tmp_path)))


def never() -> KafkaSourceOffset:
    raise AssertionError("resolved again")


def test_the_bytes_are_a_zero_the_version_and_the_json() -> None:
    assert encode(OFFSET) == b'\0v1\n{"a":{"0":5,"10":7},"\xc3\xbc":{"0":0}}'
    assert decode(encode(OFFSET)) == OFFSET


def test_a_file_of_spark_2_1_0_has_a_length_and_no_version() -> None:
    assert decode(b'\x0d{"t":{"0":3}}') == KafkaSourceOffset.from_json('{"t":{"0":3}}')


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it has 0 bytes and no offsets"),
        (b"\0", "it has 1 bytes and no offsets"),
        (b'\0v1{"t":{"0":3}}', "failed to detect the log file version line"),
        (b"\0vx\n{}", "failed to read correct log version from 'vx'"),
        (b"\0v0\n{}", "failed to read correct log version from 'v0'"),
        (b"\0v\n{}", "failed to read correct log version from 'v'"),
        (b"\0v1\n\xff", "it is not text in UTF-8"),
        (b"\0v1\n", "cannot be read: it is not JSON"),
        (b'\0v1\n{"t":{"0":-1}}', "t-0"),
    ],
)
def test_malformed_files_are_refused_with_the_file_and_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        decode(data, "file sources/0/0 of checkpoint /c")
    assert str(caught.value).startswith("[CHECKPOINT_OFFSET_INVALID] file sources/0/0 of checkpoint /c: ")
    assert reason in str(caught.value)


def test_a_newer_version_is_refused_in_sparks_words() -> None:
    with pytest.raises(CheckpointError) as caught:
        decode(b'\0v99999\n{"t":{"0":3}}', "file sources/0/0 of checkpoint /c")
    assert said(caught.value) == (
        "[CHECKPOINT_VERSION] file sources/0/0 of checkpoint /c: maximum supported log version is v1, but encountered "
        "v99999. The log file was produced by a newer version and cannot be read by this version. Nothing was read. "
        "Hint: Run the query with the version that wrote the checkpoint, or a newer one."
    )


def test_offsets_are_resolved_once(log: InitialOffsetLog, tmp_path: Path) -> None:
    assert log.get() is None
    assert log.get_or_create(lambda: OFFSET) == OFFSET
    assert (tmp_path / "sources" / "0" / "0").read_bytes() == encode(OFFSET)
    assert log.get_or_create(never) == OFFSET
    assert InitialOffsetLog(CheckpointFiles(str(tmp_path))).get() == OFFSET


def test_every_source_has_a_file_of_its_own(tmp_path: Path) -> None:
    files = CheckpointFiles(str(tmp_path))
    InitialOffsetLog(files, "sources/1").get_or_create(lambda: OFFSET)
    assert InitialOffsetLog(files).get() is None
    assert InitialOffsetLog(CheckpointFiles(str(tmp_path / "sources" / "1")), "").get() == OFFSET


def test_the_offsets_of_another_process_that_was_faster_are_taken(log: InitialOffsetLog, tmp_path: Path) -> None:
    faster = KafkaSourceOffset.from_json('{"a":{"0":1}}')

    def resolve_slowly() -> KafkaSourceOffset:
        InitialOffsetLog(CheckpointFiles(str(tmp_path))).get_or_create(lambda: faster)
        return OFFSET

    assert log.get_or_create(resolve_slowly) == faster


def test_failed_resolution_keeps_no_offsets(log: InitialOffsetLog, tmp_path: Path) -> None:
    def fail() -> KafkaSourceOffset:
        raise CheckpointError("no", condition="X")

    with pytest.raises(CheckpointError):
        log.get_or_create(fail)
    assert list(tmp_path.iterdir()) == []


def test_errors_name_the_checkpoint(log: InitialOffsetLog, tmp_path: Path) -> None:
    (tmp_path / "sources" / "0").mkdir(parents=True)
    (tmp_path / "sources" / "0" / "0").write_bytes(b"\0v2\n")
    with pytest.raises(CheckpointError, match=f"file sources/0/0 of checkpoint {tmp_path}: maximum supported"):
        log.get()


def test_file_that_comes_and_goes_is_an_error(log: InitialOffsetLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CheckpointFiles, "create", lambda *_: False)
    with pytest.raises(CheckpointError, match=r"CHECKPOINT_CHANGED\] file sources/0/0 of checkpoint .* not exist now"):
        log.get_or_create(lambda: OFFSET)
