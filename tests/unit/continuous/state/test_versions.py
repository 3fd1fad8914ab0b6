"""Names of versions, and the versions of a committed epoch."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyspark_kafka.continuous.state.versions import StateVersion, StateVersions, directory_of, schema_text


def test_version_is_the_same_after_its_text() -> None:
    version = StateVersion(12, "ab3a7", 2)
    assert StateVersion.parse(version.text) == version


@pytest.mark.parametrize("text", ["", "12", "12-ab", "x-ab.1", "12-../b.1", "12-ab.1\n", "12-.1"])
def test_text_that_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no version"):
        StateVersion.parse(text)


def test_versions_take_changes_and_keep_the_rest() -> None:
    before = StateVersions(("n int64",), {"0/t-0": "3-a.1", "0/t-1": "4-a.1"})
    after = before.with_changes(["", '{"0/t-1":"5-b.1","0/t-2":"5-b.2"}'])
    assert after.heads == {"0/t-0": "3-a.1", "0/t-1": "5-b.1", "0/t-2": "5-b.2"}
    assert before.heads["0/t-1"] == "4-a.1"
    assert StateVersions.parse(after.json()) == after


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"v":2,"schemas":[],"heads":{}}',
        '{"v":1,"schemas":"n","heads":{}}',
        '{"v":1,"schemas":[],"heads":[]}',
        '{"v":1,"schemas":[],"heads":{"0/t-0":"../../x"}}',
    ],
)
def test_malformed_versions_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        StateVersions.parse(text)


def test_directories_are_names_of_files_and_differ() -> None:
    groups = ["t-0", ".", "..", ".a", "a/b", "a%2Fb", "é", "x" * 255, "x" * 254 + "y", "", " "]
    names = [directory_of(0, group) for group in groups]
    assert len(set(names)) == len(groups)
    for name in names:
        assert name.startswith("0/")
        assert len(name) < 255
        assert not name[2:].startswith(".")
        assert "/" not in name[2:]
    assert directory_of(1, "t-0") != directory_of(0, "t-0")


def test_schema_text_tells_age_and_types_apart() -> None:
    one = pa.schema([("n", pa.int64())])
    assert len({schema_text(one, 0), schema_text(one, 5), schema_text(pa.schema([("n", pa.int32())]), 0)}) == 3
    assert schema_text(one, 5) == schema_text(one, 6)
