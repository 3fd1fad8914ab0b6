"""What the newest marker of a sink says of a batch: written, not written, or a reason to stop."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyspark_kafka._connector.sink.commit_marker import CommitMarker, MarkerFinding, judge_marker
from pyspark_kafka.errors import CheckpointError, CorruptRecordsError

OURS = CommitMarker("sink", "query", 7, "abc", records=10, encoded_bytes=1000, committed_at_ms=5)
DEEP = b"[" * 100_000
ENDLESS = OURS.to_bytes().replace(b'"batch_id":7', b'"batch_id":Infinity')


def test_a_marker_round_trips_as_json_that_people_can_read() -> None:
    assert CommitMarker.from_bytes(OURS.to_bytes(), "t-0@1") == OURS
    assert OURS.to_bytes().startswith(b'{"version":1,"sink_id":"sink","query_id":"query","batch_id":7,')


def test_fields_of_a_later_kind_of_the_same_version_are_passed_over() -> None:
    assert CommitMarker.from_bytes(OURS.to_bytes()[:-1] + b',"more":1}', "t-0@1") == OURS


@pytest.mark.parametrize(
    "value", [b"", b"{}", b"[]", b'{"version":1}', b"\xff", b'{"version":1,"sink_id":"s"}', DEEP, ENDLESS]
)
def test_record_that_is_no_marker_is_an_error_with_its_offset(value: bytes) -> None:
    with pytest.raises(CorruptRecordsError, match=r"INVALID\] The record at t-0@1 is not a commit marker"):
        CommitMarker.from_bytes(value, "t-0@1")


def test_a_marker_of_a_newer_version_is_refused() -> None:
    newer = OURS.to_bytes().replace(b'"version":1', b'"version":3')
    with pytest.raises(CheckpointError, match=r"\[COMMIT_MARKER_VERSION\] The commit marker at t-0@1 is of version 3"):
        CommitMarker.from_bytes(newer, "t-0@1")


@pytest.mark.parametrize(
    ("found", "finding"),
    [
        (None, MarkerFinding.NOT_COMMITTED),
        (replace(OURS, batch_id=6, fingerprint="other"), MarkerFinding.NOT_COMMITTED),
        (replace(OURS, batch_id=0), MarkerFinding.NOT_COMMITTED),
        # Run again with other rows: a function that is not deterministic, another partitioning.
        (replace(OURS, records=11, encoded_bytes=7, committed_at_ms=9), MarkerFinding.COMMITTED),
    ],
)
def test_an_older_marker_means_not_written_and_the_same_one_means_written(
    found: CommitMarker | None, finding: MarkerFinding
) -> None:
    assert judge_marker(found, OURS) is finding


@pytest.mark.parametrize(
    ("found", "condition", "hint"),
    [
        (replace(OURS, query_id="other"), "COMMIT_MARKER_OF_ANOTHER_QUERY", "a 'kafka.transactional.id' of its own"),
        (replace(OURS, query_id="other", batch_id=1), "COMMIT_MARKER_OF_ANOTHER_QUERY", "of its own"),
        (replace(OURS, batch_id=8), "COMMIT_MARKER_OF_A_LATER_BATCH", "restore the newest one"),
        (replace(OURS, fingerprint="xyz"), "COMMIT_MARKER_OF_OTHER_OFFSETS", "restore the newest one"),
    ],
)
def test_marker_that_allows_neither_writing_nor_skipping_is_an_error(
    found: CommitMarker, condition: str, hint: str
) -> None:
    with pytest.raises(CheckpointError) as caught:
        judge_marker(found, OURS)
    text = str(caught.value)
    assert text.startswith(f"[{condition}] ")
    assert "Nothing was written." in text
    assert hint in text.split("Hint: ")[1]
