from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.errors import CheckpointError

if TYPE_CHECKING:
    from pathlib import Path


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
