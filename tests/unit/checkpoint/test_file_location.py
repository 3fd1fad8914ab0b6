from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from kit.texts import said
from pyspark_kafka.checkpoint import CheckpointFiles, conditional_stores, file_location
from pyspark_kafka.checkpoint.file_location import FileLocation
from pyspark_kafka.errors import CheckpointError
from pyspark_kafka.version import install_command


@pytest.mark.parametrize(
    ("location", "beside"),
    [
        ("/data/cp", "/data/cp-1"),
        ("/cp", "/cp-1"),
        ("/data/what?", "/data/what?-1"),
        ("file:///data/cp/", "/data/cp-1"),
        ("s3://b/cp", "s3://b/cp-1"),
        ("s3://b/a/cp/?endpoint_override=h:9000&region=eu/west", "s3://b/a/cp-1?endpoint_override=h:9000&region=eu/west"),
        ("s3://K:S@b/cp?region=x", "s3://K:S@b/cp-1?region=x"),
        ("hdfs:///cp", "hdfs:///cp-1"),
        ("abfs://c@a.dfs.core.windows.net/cp", "abfs://c@a.dfs.core.windows.net/cp-1"),
    ],
)  # fmt: skip
def test_location_beside_another_one_has_its_query(location: str, beside: str) -> None:
    files = CheckpointFiles(location)
    assert files.beside(f"{files.base_name}-1") == beside


@pytest.mark.parametrize("location", ["/", "s3://b", "s3://b/?region=x", "hdfs:///"])
def test_root_of_a_file_system_has_nothing_beside_it(location: str) -> None:
    assert CheckpointFiles(location).base_name == ""
    with pytest.raises(CheckpointError, match="is the root of a file system"):
        CheckpointFiles(location).beside("x")


@pytest.mark.parametrize(
    ("first", "second", "overlap"),
    [
        ("s3://b/cp?region=x", "s3://b/cp/state?region=x", "within"),
        ("s3://b/cp?region=x", "s3://b/cp", "itself"),
        ("s3://K:S@b/cp", "s3a://b//cp/", "itself"),
        ("s3://b/cp", "s3://b/cp-2", ""),
        ("s3://b/cp", "s3://c/cp", ""),
        ("s3://b", "s3://b/cp", "within"),
        ("abfs://one@a/cp", "abfs://two@a/cp", ""),
        ("abfs://one:password@a/cp", "abfs://one@a/cp", "itself"),
        ("/b/cp", "s3://b/cp", ""),
        ("/data/cp", "/data/cp-2", ""),
        ("/", "/data/cp", "within"),
    ],
)
def test_locations_overlap_by_their_paths(first: str, second: str, overlap: str) -> None:
    assert CheckpointFiles(first).overlap(CheckpointFiles(second)) == overlap
    assert CheckpointFiles(second).overlap(CheckpointFiles(first)) == overlap


def test_links_are_followed_before_locations_are_compared(tmp_path: Path) -> None:
    (tmp_path / "cp").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "cp")
    assert CheckpointFiles(str(tmp_path / "cp")).overlap(CheckpointFiles(str(tmp_path / "link" / "x"))) == "within"


def test_local_location_with_hard_links_decides(tmp_path: Path) -> None:
    FileLocation(str(tmp_path / "query")).check_decides()
    assert list((tmp_path / "query").iterdir()) == []


def test_local_location_without_hard_links_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: str) -> None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(CheckpointError) as raised:
        FileLocation(str(tmp_path)).check_decides()
    assert said(raised.value) == (
        "[CHECKPOINT_NOT_EXCLUSIVE] The file system has no hard links (Operation not supported): two drivers of a "
        f"query could both write the end of an epoch to checkpoint {tmp_path}, and rows would be lost or repeated. "
        "Nothing was read. Hint: Use another location: a local or shared disk with hard links, S3, Google Cloud "
        "Storage, Azure, or HDFS."
    )
    assert list(tmp_path.iterdir()) == []


def test_location_that_is_not_there_and_cannot_be_made_is_an_error_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(CheckpointError, match="Cannot write") as raised:
        FileLocation(str(tmp_path / "file" / "query")).check_decides()
    assert raised.value.condition == "CHECKPOINT_IO"


def test_file_system_without_conditions_is_refused() -> None:
    with pytest.raises(CheckpointError, match=r"Files of mock:// cannot be created on the condition") as raised:
        FileLocation("mock:///query").check_decides()
    assert raised.value.condition == "CHECKPOINT_NOT_EXCLUSIVE"


def test_store_whose_client_is_not_installed_is_refused_with_the_name_of_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conditional_stores, "has_client", lambda _: False)
    monkeypatch.setattr(file_location, "_filesystem", lambda _: (object(), "bucket/query"))
    with pytest.raises(CheckpointError) as raised:
        FileLocation("s3a://bucket/unlike-others").check_decides()
    assert raised.value.condition == "CHECKPOINT_NOT_EXCLUSIVE"
    assert raised.value.hint == (
        f"Run {install_command('object-stores')} on the driver and all executors, for a client that can."
    )


class CarelessStore:
    """A store that ignores conditions."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def create(self, path: str, data: bytes) -> bool:
        self.files[path] = data
        return True

    def delete(self, paths: list[str]) -> None:
        for path in paths:
            self.files.pop(path, None)


def test_store_that_writes_against_a_condition_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    store = CarelessStore()
    monkeypatch.setattr(file_location, "conditional_store", lambda *_: store)
    monkeypatch.setattr(file_location, "_filesystem", lambda _: (object(), "bucket/query"))
    with pytest.raises(CheckpointError, match="The store ignores the condition of a write") as raised:
        FileLocation("s3://bucket/query").check_decides()
    assert raised.value.condition == "CHECKPOINT_NOT_EXCLUSIVE"
    assert store.files == {}
