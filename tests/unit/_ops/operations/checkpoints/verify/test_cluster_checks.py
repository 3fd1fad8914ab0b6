from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kit.checkpoint_files import QUERY_ID, offsets_text, write_checkpoint
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.transactions.group_positions import GroupPosition
from pyspark_kafka._client.client.transactions.inspection import TransactionDescription, TransactionState
from pyspark_kafka._connector.sink.commit_marker import CommitMarker, batch_fingerprint
from pyspark_kafka._connector.sink.source_positions import LaneRecord, PositionNote
from pyspark_kafka._ops.operations.checkpoints.batches import MOVED
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import read_checkpoint
from pyspark_kafka._ops.operations.checkpoints.verify.cluster_checks import check_cluster
from pyspark_kafka._ops.operations.checkpoints.verify.cluster_snapshot import ClusterSnapshot, TopicState
from pyspark_kafka._ops.operations.checkpoints.verify.expectation import Expectation, expect
from pyspark_kafka._ops.operations.checkpoints.verify.file_judge import FileJudge
from pyspark_kafka._ops.operations.checkpoints.verify.findings import CheckpointFinding, Findings
from pyspark_kafka.checkpoint.topic_ids import TopicIdentities

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
OTHER_ID = "00000000-0000-0000-0000-000000000001"
ENDS = [{"t": {"0": 5, "1": 5}}, {"t": {"0": 9, "1": 9}}, {"t": {"0": 12, "1": 12}}]


@pytest.fixture
def expected(tmp_path: Path) -> Expectation:
    """Two batches are finished, the third one has begun."""
    write_checkpoint(tmp_path, ENDS, finished=2)
    return replace(expect(FileJudge(read_checkpoint(str(tmp_path)), Findings(), str)), topic_ids={"t": "id"})


@pytest.fixture
def snapshot() -> ClusterSnapshot:
    return ClusterSnapshot(
        topics={"t": TopicState(True, "id", frozenset({0, 1}))},
        first={P0: 0, P1: 0},
        ends={P0: 100, P1: 100},
    )


def judged(expected: Expectation, snapshot: ClusterSnapshot) -> list[CheckpointFinding]:
    findings = Findings()
    check_cluster(expected, snapshot, findings)
    return list(findings)


def only(expected: Expectation, snapshot: ClusterSnapshot) -> tuple[str, str, str, str]:
    (found,) = judged(expected, snapshot)
    return found.severity.value, found.code, found.where, found.text


def test_expectation_is_what_the_checkpoint_says(expected: Expectation) -> None:
    assert (expected.query_id, expected.sink_id) == (QUERY_ID, f"pyspark-kafka-{QUERY_ID}")
    assert expected.position == {P0: 9, P1: 9}
    assert expected.unfinished_end() == {P0: 12, P1: 12}


def test_expectation_has_the_topic_ids_of_all_sources_that_can_be_read(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS)
    for source, content in (
        ("0", TopicIdentities({"t": "1"}).to_bytes()),
        ("1", TopicIdentities({"u": "2", "v": "3"}).to_bytes()),
        ("2", None),
        ("3", b"v1"),
    ):
        directory = tmp_path / "sources" / source
        directory.mkdir(exist_ok=True)
        if content is not None:
            (directory / "topic-ids").write_bytes(content)
    expected = expect(FileJudge(read_checkpoint(str(tmp_path)), Findings(), str))
    assert expected.topic_ids == {"t": "1", "u": "2", "v": "3"}


def test_offsets_within_the_logs_are_well(expected: Expectation, snapshot: ClusterSnapshot) -> None:
    assert judged(expected, snapshot) == []


def test_position_at_both_edges_of_the_log_is_well(expected: Expectation, snapshot: ClusterSnapshot) -> None:
    snapshot.first = {P0: 9, P1: 9}
    snapshot.ends = {P0: 12, P1: 12}
    assert judged(expected, snapshot) == []


def test_records_below_the_beginning_of_the_log_are_lost(expected: Expectation, snapshot: ClusterSnapshot) -> None:
    snapshot.first = {P0: 10, P1: 50}
    severity, code, where, text = only(expected, snapshot)
    assert (severity, code, where) == ("fault", "records-lost", "t")
    assert text == (
        "At most 42 records of t that the query has not read are deleted, in 2 partitions: the log of t-1 begins at "
        "50, and the query is at 9."
    )


def test_position_beyond_the_end_of_the_log_is_a_fault(expected: Expectation, snapshot: ClusterSnapshot) -> None:
    snapshot.ends = {P0: 100, P1: 8}
    found = judged(expected, snapshot)
    assert [(each.code, each.where) for each in found] == [("beyond-end", "t"), ("unfinished-beyond-end", "t")]
    snapshot.ends = {P0: 100, P1: 11}
    assert [each.code for each in judged(expected, snapshot)] == ["unfinished-beyond-end"]


def test_sources_that_read_one_topic_are_judged_by_the_one_that_each_finding_is_about(
    tmp_path: Path, snapshot: ClusterSnapshot
) -> None:
    write_checkpoint(tmp_path, ENDS, finished=2)
    behind, ahead = {"t": {"0": 100, "1": 5}}, {"t": {"0": 900, "1": 5}}
    for ends in ([behind, ahead], [ahead, behind]):
        (tmp_path / "offsets" / "1").write_text(offsets_text(1, ends))
        (tmp_path / "offsets" / "2").write_text(offsets_text(2, ends))
        expected = expect(FileJudge(read_checkpoint(str(tmp_path)), Findings(), str))
        snapshot.first, snapshot.ends = {P0: 500, P1: 5}, {P0: 900, P1: 5}
        _, code, where, text = only(expected, snapshot)
        assert (code, where) == ("records-lost", "t")
        assert text == (
            "At most 400 records of t that the query has not read are deleted, in 1 partition: the log of t-0 begins "
            "at 500, and the query is at 100."
        )
        snapshot.first, snapshot.ends = {P0: 0, P1: 5}, {P0: 899, P1: 5}
        found = judged(expected, snapshot)
        assert [each.code for each in found] == ["beyond-end", "unfinished-beyond-end"]
        assert "t-0 ends at 899, and the query is at 900." in found[0].text


def test_recreated_topic_is_known_by_its_id(expected: Expectation, snapshot: ClusterSnapshot) -> None:
    snapshot.topics = {"t": TopicState(True, OTHER_ID, frozenset({0, 1}))}
    snapshot.first = {P0: 50, P1: 50}
    severity, code, where, text = only(expected, snapshot)
    assert (severity, code, where) == ("fault", "topic-recreated", "t")
    assert OTHER_ID in text


def test_topic_without_ids_is_not_taken_for_a_recreated_one(expected: Expectation, snapshot: ClusterSnapshot) -> None:
    snapshot.topics = {"t": TopicState(True, None, frozenset({0, 1}))}
    assert judged(expected, snapshot) == []


def test_topic_and_partitions_that_are_gone_are_faults(expected: Expectation, snapshot: ClusterSnapshot) -> None:
    snapshot.topics = {"t": TopicState(False)}
    assert only(expected, replace(snapshot, first={}, ends={}))[:3] == ("fault", "topic-gone", "t")
    snapshot.topics = {"t": TopicState(True, "id", frozenset({0}))}
    assert only(expected, snapshot)[:3] == ("fault", "partitions-gone", "t")


def test_new_partitions_are_a_note(expected: Expectation, snapshot: ClusterSnapshot) -> None:
    snapshot.topics = {"t": TopicState(True, "id", frozenset({0, 1, 2}))}
    assert only(expected, snapshot)[:3] == ("note", "new-partitions", "t")


def test_silence_of_the_brokers_is_no_fault(expected: Expectation) -> None:
    findings = Findings()
    check_cluster(expected, ClusterSnapshot(unknown=["The brokers are away."]), findings)
    assert list(findings) == []
    assert findings.unknown == ["The brokers are away."]


def marker(expected: Expectation, batch_id: int, query_id: str = QUERY_ID) -> CommitMarker:
    assert expected.last is not None
    entry = expected.last.entry
    return CommitMarker(expected.sink_id, query_id, batch_id, batch_fingerprint(entry.sources, entry.offsets))


@pytest.mark.parametrize(
    ("batch_id", "severity", "code", "said"),
    [
        (1, "note", "marker", "A restart runs batch 2 again and writes it"),
        (2, "note", "marker", "writes nothing, because the sink has it"),
        (3, "fault", "marker-of-a-later-batch", "the checkpoint is an older copy"),
        (0, "warning", "marker-behind", "the checkpoint has finished batch 1"),
    ],
)
def test_marker_tells_what_becomes_of_the_unfinished_batch(
    expected: Expectation, snapshot: ClusterSnapshot, batch_id: int, severity: str, code: str, said: str
) -> None:
    known = replace(snapshot, marker_known=True, marker=marker(expected, batch_id))
    found = only(expected, known)
    assert found[:3] == (severity, code, expected.sink_id)
    assert said in found[3]


def test_marker_of_before_a_rewind_is_a_note(expected: Expectation, snapshot: ClusterSnapshot) -> None:
    last = expected.last
    assert last is not None
    entry = replace(last.entry, metadata={**last.entry.metadata, "conf": {MOVED: "true"}})
    rewound = replace(expected, last=replace(last, entry=entry, finished=True))
    known = replace(snapshot, marker_known=True, marker=marker(expected, 0))
    severity, code, _, text = only(rewound, known)
    assert (severity, code) == ("note", "marker")
    assert "A rewind has moved the query since, as batch 2" in text


@pytest.mark.parametrize("newest", [None, 4])
def test_marker_that_the_offset_log_still_lacks_is_a_fault(
    expected: Expectation, snapshot: ClusterSnapshot, newest: int | None
) -> None:
    findings = Findings()
    known = replace(snapshot, marker_known=True, marker=marker(expected, 5))
    check_cluster(expected, known, findings, newest=newest)
    assert [(each.severity.value, each.code) for each in findings] == [("fault", "marker-of-a-later-batch")]


@pytest.mark.parametrize("newest", [5, 6])
def test_marker_of_a_batch_that_was_begun_meanwhile_is_a_note(
    expected: Expectation, snapshot: ClusterSnapshot, newest: int
) -> None:
    findings = Findings()
    known = replace(snapshot, marker_known=True, marker=marker(expected, 5))
    check_cluster(expected, known, findings, newest=newest)
    (found,) = findings
    assert (found.severity.value, found.code, found.where) == ("note", "in-use", expected.sink_id)
    assert found.text.endswith("which was begun after the checkpoint was read: the query runs.")


def test_marker_of_other_offsets_is_a_fault(expected: Expectation, snapshot: ClusterSnapshot) -> None:
    other = replace(marker(expected, 2), fingerprint="other")
    found = only(expected, replace(snapshot, marker_known=True, marker=other))
    assert found[:2] == ("fault", "marker-of-other-offsets")
    assert "A restart is refused." in found[3]


def test_marker_of_another_query_is_a_fault(expected: Expectation, snapshot: ClusterSnapshot) -> None:
    found = only(expected, replace(snapshot, marker_known=True, marker=marker(expected, 1, OTHER_ID)))
    assert found[:2] == ("fault", "marker-of-another-query")


def test_no_marker_is_a_note_if_the_query_is_said_to_write_exactly_once(
    expected: Expectation, snapshot: ClusterSnapshot
) -> None:
    named = replace(expected, is_sink_named=True)
    assert only(named, replace(snapshot, marker_known=True))[:2] == ("note", "no-marker")
    assert judged(expected, replace(snapshot, marker_known=True)) == []


def test_open_transaction_is_a_warning(expected: Expectation, snapshot: ClusterSnapshot) -> None:
    transaction = TransactionDescription(
        expected.sink_id, TransactionState.ONGOING, 1, 1, 1, "b:9092", 60_000, 1_767_225_600_000, (P0,)
    )
    found = only(expected, replace(snapshot, transactions=(transaction,)))
    assert found[:3] == ("warning", "open-transaction", expected.sink_id)
    assert "is open since 2026-01-01T00:00:00.000Z (Ongoing)" in found[3]


def in_lanes(expected: Expectation) -> Expectation:
    return replace(expected, lanes=LaneRecord("start", "group", "prefix", 2, {P0: "id", P1: "id"}))


def test_group_that_is_ahead_of_the_checkpoint_is_a_note(expected: Expectation, snapshot: ClusterSnapshot) -> None:
    text = PositionNote(QUERY_ID, "id", "4").text()
    group = {P0: GroupPosition(15, text), P1: GroupPosition(9, text)}
    found = only(in_lanes(expected), replace(snapshot, group=group))
    assert found[:3] == ("note", "group-ahead", "group")
    assert "in 1 partition (t-0: 15, and 9 here)" in found[3]


def test_group_without_its_positions_or_of_another_query_is_a_fault(
    expected: Expectation, snapshot: ClusterSnapshot
) -> None:
    assert only(in_lanes(expected), replace(snapshot, group={}))[:3] == ("fault", "group", "group")
    foreign = {P0: GroupPosition(15, "x"), P1: GroupPosition(9, "x")}
    assert only(in_lanes(expected), replace(snapshot, group=foreign))[:3] == ("fault", "group", "group")
