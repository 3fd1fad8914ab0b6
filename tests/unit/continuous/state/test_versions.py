"""Names of versions, and the versions of a committed epoch."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyspark_kafka.checkpoint.state_names import CommittedHeads, StateVersion, directory_of
from pyspark_kafka.continuous.state.versions import (
    MAX_COMMITTED_STATES,
    StatePlan,
    StateVersions,
    fingerprint_of,
    schema_text,
)


def test_version_is_the_same_after_its_text() -> None:
    version = StateVersion(12, "ab3a7", 2)
    assert StateVersion.parse(version.text) == version


@pytest.mark.parametrize("text", ["", "12", "12-ab", "x-ab.1", "12-../b.1", "12-ab.1\n", "12-.1"])
def test_text_that_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a version"):
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
        '{"v":1,"schemas":[],"heads":{"0/T-0":"1-a.1"}}',
    ],
)
def test_malformed_versions_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        StateVersions.parse(text)


def test_directories_are_names_of_files_and_differ() -> None:
    groups = ["t-0", ".", "..", ".a", "a/b", "a%2Fb", "a%2fb", "é", "É", "x" * 255, "x" * 254 + "y", "", " "]
    # Some file systems have one directory for both.
    groups += ["T-0", "aB", "AB", "X" * 255, "%41b", "%61B"]
    names = [directory_of(0, group) for group in groups]
    assert len({name.lower() for name in names}) == len(groups)
    assert StateVersions.parse(StateVersions((), dict.fromkeys(names, "1-a.1")).json()).heads.keys() == set(names)
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


def test_heads_that_a_sink_keeps_are_the_same_after_their_text() -> None:
    heads = CommittedHeads("abc", ("3-w.1", None, "4-wc2.1"))
    assert heads.text() == "abc,3-w.1,-,4-wc2.1"
    assert CommittedHeads.parse(heads.text()) == heads
    with pytest.raises(ValueError, match="not a version"):
        CommittedHeads.parse("abc,../x")


def test_heads_that_a_sink_keeps_fit_into_a_position() -> None:
    longest = f"{10**19 - 1}-{'z' * 32}.{10**9 - 1}"
    StateVersion.parse(longest)
    text = CommittedHeads(fingerprint_of(["n int64"]), (longest,) * MAX_COMMITTED_STATES).text()
    assert len(text) < 3_000
    assert " " not in text
    assert text.isascii()


def test_run_begins_with_the_heads_of_each_key_group() -> None:
    plan = StatePlan("place", "run", {0: ("t-0",), 1: ("t-1",)}, {"0/t-0": "3-w.1", "1/t-1": "4-w.1"}, (0, 0), "abc")
    assert plan.committed() == {"t-0": "abc,3-w.1,-", "t-1": "abc,-,4-w.1"}


def test_versions_of_a_sink_replace_those_of_the_checkpoint() -> None:
    before = StateVersions(("n int64",), {"0/t-0": "3-a.1", "0/t-1": "4-a.1"}, {"0/t-2": 1})
    after = before.with_heads({"0/t-0": "5-b.1", "0/t-1": None, "0/t-2": "6-b.1"})
    assert (dict(after.heads), dict(after.gone)) == ({"0/t-0": "5-b.1", "0/t-2": "6-b.1"}, {})
