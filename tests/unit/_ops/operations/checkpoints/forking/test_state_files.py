from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka._ops.operations.checkpoints.forking.state_files import judge_state, whole_versions

NOTES = ["state/0/_metadata/metadata", "state/0/0/_metadata/schema"]


def files(*names: str) -> list[str]:
    return [*NOTES, *(f"state/0/0/{name}" for name in names)]


def test_deltas_from_the_first_one_make_a_version_up() -> None:
    judged = judge_state(files("1.delta", "2.delta", "3.delta"), 2)
    assert judged.missing == ()
    assert judged.later == ("state/0/0/3.delta",)
    assert set(judged.kept) == set(files("1.delta", "2.delta"))


@pytest.mark.parametrize(
    ("names", "version", "whole"),
    [
        (("3.delta", "4.delta"), 4, False),
        (("3.snapshot", "4.delta"), 4, True),
        (("4.snapshot",), 3, False),
        (("3.snapshot", "5.delta"), 5, False),
        (("7.zip", "8.zip"), 7, True),
        (("7.zip", "8.changelog", "9.changelog"), 9, True),
        (("7.zip", "9.changelog"), 9, False),
        (("8.zip",), 7, False),
    ],
)
def test_version_needs_all_of_it_or_everything_since(names: tuple[str, ...], version: int, whole: bool) -> None:
    assert (judge_state(files(*names), version).missing == ()) is whole


def test_each_store_of_a_partition_is_judged() -> None:
    names = ["state/1/0/left-keyToNumValues/1.delta", "state/1/0/right-keyToNumValues/2.delta"]
    assert judge_state(names, 1).missing == ("state/1/0/right-keyToNumValues",)


def test_checksum_is_no_version_of_its_own() -> None:
    judged = judge_state(files("1.delta.crc", "2.delta", "2.delta.crc"), 1)
    assert judged.missing == ("state/0/0",)
    assert len(judged.later) == 2


def test_versions_with_ids_of_their_own_are_noticed() -> None:
    assert judge_state(files("1_6f4b2c1e-aa.zip"), 1).by_unique_id
    assert not judge_state(files("1.zip", "SSTs/000008-6f4b2c1e.sst"), 1).by_unique_id


def test_notes_of_later_batches_are_later() -> None:
    names = ["state/0/_metadata/v2/0", "state/0/_metadata/v2/5", "state/0/0/1.delta"]
    assert judge_state(names, 5).later == ("state/0/_metadata/v2/5",)
    assert judge_state(names, 6).later == ()


@given(st.sets(st.integers(1, 12)), st.sets(st.integers(1, 12)), st.integers(0, 12))
def test_version_is_whole_if_and_only_if_it_can_be_computed(
    deltas: set[int], snapshots: set[int], version: int
) -> None:
    names = [f"state/0/0/{each}.delta" for each in deltas] + [f"state/0/0/{each}.snapshot" for each in snapshots]
    # As a provider does it: back from the version to something that has all of it.
    at = version
    while at > 0 and at not in snapshots and at in deltas:
        at -= 1
    computable = not names or at == 0 or at in snapshots
    assert (not judge_state(names, version).missing) is computable
    assert (version in whole_versions(names, range(13))) is computable
