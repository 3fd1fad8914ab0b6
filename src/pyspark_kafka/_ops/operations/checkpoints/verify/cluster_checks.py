"""Compares a checkpoint with the state of its cluster. Pure."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pyspark_kafka._base.offsets import timestamp_text
from pyspark_kafka._connector.sink.commit_marker import batch_fingerprint
from pyspark_kafka._connector.sink.source_positions import check_owned, is_same, merge_positions
from pyspark_kafka._ops.operations.checkpoints.verify.findings import Severity
from pyspark_kafka.errors import CheckpointError, listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._ops.operations.checkpoints.verify.cluster_snapshot import ClusterSnapshot
    from pyspark_kafka._ops.operations.checkpoints.verify.expectation import Expectation
    from pyspark_kafka._ops.operations.checkpoints.verify.findings import Findings

_GO_ON = (
    "A restart fails with KAFKA_DATA_LOSS; with failOnDataLoss=false it continues at the beginning of the log. Or fork "
    "the checkpoint at offsets that are there."
)
_RECREATED = (
    "Fork the checkpoint at the beginning of the topic; or restart with failOnDataLoss=false, which reads the topic "
    "from its beginning."
)


def check_cluster(
    expected: Expectation, snapshot: ClusterSnapshot, findings: Findings, *, newest: int | None = None
) -> None:
    """Add the differences between a checkpoint and its cluster, and the unknown values of the cluster.

    Args:
        expected: the content of the checkpoint.
        snapshot: the state of the cluster.
        findings: the findings are added here.
        newest: the last batch of the offset log, listed after the requests to brokers; None if unknown.
    """
    findings.unknown.extend(snapshot.unknown)
    _check_topics(expected, snapshot, findings)
    _check_offsets(expected, snapshot, findings)
    _check_marker(expected, snapshot, findings, newest)
    _check_transactions(snapshot, findings)
    _check_group(expected, snapshot, findings)


def _check_topics(expected: Expectation, snapshot: ClusterSnapshot, findings: Findings) -> None:
    known: dict[str, set[int]] = defaultdict(set)
    for each in expected.partitions():
        known[each.topic].add(each.partition)
    for topic, numbers in sorted(known.items()):
        state = snapshot.topics.get(topic)
        if state is None:
            continue
        if not state.exists:
            text = f"Topic '{topic}' does not exist, or this user may not describe it. The query has read it."
            advice = "Look at the name of the cluster and the rights of this user; otherwise the topic was deleted."
            findings.add_finding(Severity.FAULT, "topic-gone", topic, text, advice)
            continue
        if _is_recreated(topic, expected, snapshot):
            text = (
                f"Topic '{topic}' was recreated: its id is {state.topic_id}, and the query has read one with the id "
                f"{expected.topic_ids[topic]}. Its positions mean nothing in the topic of now."
            )
            findings.add_finding(Severity.FAULT, "topic-recreated", topic, text, _RECREATED)
            continue
        gone = sorted(numbers - state.partitions)
        if gone:
            text = (
                f"Topic '{topic}' has {len(state.partitions)} partitions, and the query has read "
                f"{listed(gone, noun='partitions')}, which it does not have: it was recreated with fewer."
            )
            findings.add_finding(Severity.FAULT, "partitions-gone", topic, text, _RECREATED)
        new = sorted(state.partitions - numbers)
        if new:
            text = f"{len(new)} partitions are new: the next batch reads them from their beginning."
            findings.add_finding(Severity.NOTE, "new-partitions", topic, text)


def _is_recreated(topic: str, expected: Expectation, snapshot: ClusterSnapshot) -> bool:
    state, kept = snapshot.topics.get(topic), expected.topic_ids.get(topic)
    return state is not None and None not in (state.topic_id, kept) and not is_same(str(state.topic_id), str(kept))


def _check_offsets(expected: Expectation, snapshot: ClusterSnapshot, findings: Findings) -> None:
    comparable = [each for each in expected.partitions() if not _is_recreated(each.topic, expected, snapshot)]
    position, unfinished = expected.position, expected.unfinished_end()
    lost = {
        each: snapshot.first[each] - position[each]
        for each in comparable
        if each in position and each in snapshot.first
    }
    for topic, found in _by_topic({each: count for each, count in lost.items() if count > 0}).items():
        worst = max(found, key=lambda each: found[each])
        text = (
            f"At most {sum(found.values()):,} records of {topic} that the query has not read are deleted, in "
            f"{_partitions(len(found))}: the log of {worst} begins at {snapshot.first[worst]}, and the query is at "
            f"{position[worst]}."
        )
        findings.add_finding(Severity.FAULT, "records-lost", topic, text, _GO_ON)
    for code, positions, what in (
        ("beyond-end", expected.furthest, "the query is at"),
        ("unfinished-beyond-end", unfinished, "the unfinished batch ends at"),
    ):
        beyond = {
            each: positions[each] - snapshot.ends[each]
            for each in comparable
            if each in positions and positions[each] > snapshot.ends.get(each, positions[each])
        }
        for topic, found in _by_topic(beyond).items():
            worst = max(found, key=lambda each: found[each])
            text = (
                f"In {_partitions(len(found))} of {topic} the log ends before the position: {worst} ends at "
                f"{snapshot.ends[worst]}, and {what} {positions[worst]}. The topic was recreated, or brokers have lost "
                "records (unclean leader election)."
            )
            findings.add_finding(Severity.FAULT, code, topic, text, _RECREATED)


def _by_topic(found: Mapping[TopicPartition, int]) -> dict[str, dict[TopicPartition, int]]:
    grouped: dict[str, dict[TopicPartition, int]] = defaultdict(dict)
    for each, count in found.items():
        grouped[each.topic][each] = count
    return dict(grouped)


def _partitions(count: int) -> str:
    return f"{count:,} partition" if count == 1 else f"{count:,} partitions"


def _check_marker(expected: Expectation, snapshot: ClusterSnapshot, findings: Findings, newest: int | None) -> None:
    marker, last = snapshot.marker, expected.last
    if not snapshot.marker_known or expected.lanes is not None:
        return
    where = expected.sink_id
    if marker is None:
        if last is not None and expected.is_sink_named:
            text = (
                "The sink has no commit marker: the query has not written exactly once yet, or its writer has another "
                "transactional id or commit topic."
            )
            findings.add_finding(Severity.NOTE, "no-marker", where, text)
        return
    had = f"The sink has batch {marker.batch_id}, committed {timestamp_text(marker.committed_at_ms)}"
    if expected.query_id is not None and marker.query_id != expected.query_id:
        text = (
            f"{had}, of query {marker.query_id}; this checkpoint is of query {expected.query_id}. A restart is refused."
        )
        advice = (
            "Set a 'kafka.transactional.id' of its own for each query; or restore the checkpoint of the other query."
        )
        findings.add_finding(Severity.FAULT, "marker-of-another-query", where, text, advice)
        return
    if last is None:
        return
    if marker.batch_id > last.batch_id and newest is not None and marker.batch_id <= newest:
        # The file in offsets is written before the marker, so a listing after the read of the marker has it.
        text = f"{had}, which was begun after the checkpoint was read: the query runs."
        findings.add_finding(Severity.NOTE, "in-use", where, text)
        return
    if marker.batch_id > last.batch_id:
        text = f"{had}, and the last batch of the checkpoint is {last.batch_id}: the checkpoint is an older copy."
        advice = (
            "Restore the newest checkpoint. To write the batches again on purpose, set a new 'kafka.transactional.id'."
        )
        findings.add_finding(Severity.FAULT, "marker-of-a-later-batch", where, text, advice)
        return
    if marker.batch_id == last.batch_id:
        same = marker.fingerprint == batch_fingerprint(last.entry.sources, last.entry.offsets)
        if not same:
            text = f"{had}, with other source offsets than offsets/{last.batch_id} has. "
            text += "A restart is refused." if not last.finished else "The checkpoint was changed since."
            advice = "Restore the newest checkpoint, or set a new 'kafka.transactional.id' to write the batch again."
            findings.add_finding(Severity.FAULT, "marker-of-other-offsets", where, text, advice)
        elif last.finished:
            findings.add_finding(Severity.NOTE, "marker", where, f"{had}, the last one of the checkpoint.")
        else:
            text = f"{had}. A restart runs this batch again and writes nothing, because the sink has it."
            findings.add_finding(Severity.NOTE, "marker", where, text)
        return
    if not last.finished and marker.batch_id == last.batch_id - 1:
        text = f"{had}. A restart runs batch {last.batch_id} again and writes it: the sink does not have it."
        findings.add_finding(Severity.NOTE, "marker", where, text)
        return
    if last.is_moved:
        text = f"{had}. A rewind has moved the query since, as batch {last.batch_id}; a restart writes the next one."
        findings.add_finding(Severity.NOTE, "marker", where, text)
        return
    text = f"{had}, and the checkpoint has finished batch {last.batch_id - (not last.finished)}: "
    text += "later batches were written in another way, or the sink has lost its marker."
    findings.add_finding(
        Severity.WARNING,
        "marker-behind",
        where,
        text,
        "Look whether the query's writer still has deliveryGuarantee=exactly_once and this transactional id.",
    )


def _check_transactions(snapshot: ClusterSnapshot, findings: Findings) -> None:
    for each in snapshot.transactions:
        since = "" if each.began_at_ms is None else f" since {timestamp_text(each.began_at_ms)}"
        text = (
            f"The transaction of '{each.transactional_id}' is open{since} ({each.state}): readers with read_committed "
            "wait for its end. A query that runs ends it; a restart aborts it; the brokers abort it after "
            f"{each.timeout_ms} ms."
        )
        # This is not a fault while the query runs, and the checkpoint does not show that.
        findings.add_finding(
            Severity.WARNING,
            "open-transaction",
            each.transactional_id,
            text,
            "If the query does not run, restart it, or use `pyspark-kafka transactions abort`.",
        )


def _check_group(expected: Expectation, snapshot: ClusterSnapshot, findings: Findings) -> None:
    lanes = expected.lanes
    if lanes is None or snapshot.group is None:
        return
    topic_ids = {name: state.topic_id for name, state in snapshot.topics.items() if state.topic_id is not None}
    try:
        if expected.query_id is not None:
            check_owned(snapshot.group, expected.query_id, lanes.group_id)
        start = merge_positions(expected.position, snapshot.group, lanes, topic_ids)
    except CheckpointError as error:
        findings.add_finding(Severity.FAULT, "group", lanes.group_id, error.message, error.hint)
        return
    ahead = [each for each, at in start.items() if at > expected.position.get(each, at)]
    if ahead:
        first = ahead[0]
        text = (
            f"The consumer group '{lanes.group_id}' is ahead of the checkpoint in {_partitions(len(ahead))} ({first}: "
            f"{start[first]}, and {expected.position[first]} here). A restart continues where the group is: these "
            "records are in the sink."
        )
        findings.add_finding(Severity.NOTE, "group-ahead", lanes.group_id, text)
