"""Data loss as a value: planning finds it, the source decides by `failOnDataLoss` between an error and a warning.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from pyspark_kafka.errors import MAX_LISTED, DataLossError, listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark_kafka._base.model import TopicPartition


class DataLossKind(str, Enum):
    """The kinds of data loss, with the names of Spark's sub-conditions of `KAFKA_DATA_LOSS`."""

    INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS = "INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS"
    ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO = "ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO"
    PARTITIONS_DELETED = "PARTITIONS_DELETED"
    PARTITIONS_DELETED_AND_GROUP_ID_CONFIG_PRESENT = "PARTITIONS_DELETED_AND_GROUP_ID_CONFIG_PRESENT"
    PARTITION_OFFSET_CHANGED = "PARTITION_OFFSET_CHANGED"

    @property
    def condition(self) -> str:
        """The error condition of this kind."""
        return f"KAFKA_DATA_LOSS.{self.value}"


@dataclass(frozen=True, slots=True)
class DataLoss:
    """One partition with lost records, or possibly lost records.

    Attributes:
        expected_offset: the offset to continue from; 0 for a new partition; None if it is not known.
        found_offset: the offset that was found instead, first or end of the log; None if the partition was deleted.
        group_id: the `kafka.group.id` of the query, if it is part of the condition.
        is_there: whether the topic-partition exists in the cluster; None if it was not looked up.
        is_same_topic: whether the topic has the id that this run has read.
    """

    kind: DataLossKind
    topic_partition: TopicPartition
    expected_offset: int | None = None
    found_offset: int | None = None
    group_id: str | None = None
    is_there: bool | None = None
    is_same_topic: bool = False

    def describe(self) -> str:
        """Return the loss of the partition as a sentence without its full stop."""
        tp, expected, found = self.topic_partition, self.expected_offset, self.found_offset
        if self.kind is DataLossKind.INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS:
            return f"{tp}: the first offset of the new partition cannot be found, it may have been deleted"
        if self.kind is DataLossKind.ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO:
            return f"{tp}: the new partition starts from {found} instead of {expected}, {_count(expected, found)}"
        gone = f"{tp}: the partition was read up to {expected}, and {_GONE[self.is_there]}"
        if self.kind is DataLossKind.PARTITIONS_DELETED:
            return gone
        if self.kind is DataLossKind.PARTITIONS_DELETED_AND_GROUP_ID_CONFIG_PRESENT:
            return (
                f"{gone}; option 'kafka.group.id' is '{self.group_id}', but no consumer group is joined, so no other "
                "query of the group can have taken it"
            )
        return (
            f"{tp}: the offset to continue from was {expected}, but the log now ends at {found}, "
            f"{_count(found, expected)}"
        )


_GONE = {
    None: "has been deleted or left the subscription",
    True: "has left the subscription; it exists in the cluster",
    False: "has been deleted",
}
_CORRECT = (
    "If the subscription or the address of the cluster is wrong, correct it and start the query again: it continues "
    "at its position. "
)
_CONTINUE = (
    "Set failOnDataLoss to false to continue with the remaining records, or start with a new checkpointLocation."
)
_MOVE = (
    "Accept this loss once: move the query to offsets that the log has, with `pyspark-kafka checkpoint rewind` and "
    "--offsets (-2 is the beginning of a log). Or accept every loss: set failOnDataLoss to false."
)


def _count(start: int | None, end: int | None) -> str:
    """Return the number of offsets between two as text; both are known here."""
    lost = (end or 0) - (start or 0)
    return f"{lost} {'offset' if lost == 1 else 'offsets'} [{start}, {end}) missing"


def deleted_kind(group_id: str | None) -> DataLossKind:
    """Return the kind of a deleted partition; Spark has a condition of its own for queries with a consumer group."""
    if group_id is not None:
        return DataLossKind.PARTITIONS_DELETED_AND_GROUP_ID_CONFIG_PRESENT
    return DataLossKind.PARTITIONS_DELETED


def data_loss_error(findings: Sequence[DataLoss], *, is_planned: bool = True) -> DataLossError:
    """Build the error of a plan's findings; the caller raises it, or logs it if data loss is tolerated.

    If all findings are of one kind, it has the condition of the kind; otherwise `KAFKA_DATA_LOSS`, with the kinds in
    the text.

    Args:
        findings: the losses.
        is_planned: whether the micro-batch has an end, which the checkpoint keeps; a query that is refused before that
            continues as soon as the cause is removed.

    Source: Spark `KAFKA_DATA_LOSS` of `kafka-error-conditions.json`.
    """
    # The position in a deleted or unread partition cannot be moved.
    accept = _MOVE if any(finding.kind is DataLossKind.PARTITION_OFFSET_CHANGED for finding in findings) else _CONTINUE
    outcome = "Nothing more was read." if is_planned else "Nothing more was read, and no micro-batch was planned."
    return _error(
        findings,
        f"{_causes(findings)}. {_describe(findings)}. {outcome}",
        hint=accept if is_planned else f"{_CORRECT}{accept}",
    )


def past_loss_error(findings: Sequence[DataLoss], checkpoint: str, batch: str) -> DataLossError:
    """Build the error of a micro-batch that another run has planned, and whose losses are not losses now.

    Args:
        findings: the losses of the plan: partitions that are there, logs that reach the position, and new partitions
            that are there, and not in the subscription.
        checkpoint: the location of the checkpoint, or a word in its place.
        batch: the number of the last finished micro-batch, or a letter in its place.
    """
    explained = "" if batch.isdecimal() else ", with the last number in the checkpoint's folder `commits`,"
    return _error(
        findings,
        "The checkpoint has a micro-batch that a former run has planned, and that does not fit this run: "
        f"{listed([_describe_past(finding) for finding in findings], separator='; ', noun='partitions')}. The records "
        "are not lost: that run had another subscription, another cluster, or a broker that lagged. Nothing more was "
        "read.",
        hint=f"Remove the planned micro-batch with `pyspark-kafka checkpoint rewind {checkpoint} --batch {batch}`"
        f"{explained} and start the query again. With failOnDataLoss=false it would read records twice.",
    )


def _describe_past(finding: DataLoss) -> str:
    tp, expected, found = finding.topic_partition, finding.expected_offset, finding.found_offset
    if finding.kind is DataLossKind.PARTITION_OFFSET_CHANGED:
        return f"{tp}: the query has read up to {expected}, the plan ends at {found}, and the log reaches {expected}"
    if finding.kind is DataLossKind.INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS:
        return f"{tp}: the plan has it as a new partition, and the subscription lacks it"
    return f"{tp}: the query has read up to {expected}, the plan lacks the partition, and the subscription has it"


def _error(findings: Sequence[DataLoss], text: str, *, hint: str) -> DataLossError:
    kinds = list(dict.fromkeys(finding.kind for finding in findings))
    return DataLossError(
        text,
        condition="KAFKA_DATA_LOSS" if len(kinds) > 1 else kinds[0].condition,
        hint=hint,
        parameters={
            "kinds": ", ".join(kind.value for kind in kinds),
            "topic_partitions": ", ".join(str(finding.topic_partition) for finding in findings[:MAX_LISTED]),
            "count": len(findings),
        },
    )


def _describe(findings: Sequence[DataLoss]) -> str:
    several = len({finding.kind for finding in findings}) > 1
    texts = [f"{finding.kind.value} {finding.describe()}" if several else finding.describe() for finding in findings]
    return listed(texts, separator="; ", noun="partitions")


def _causes(findings: Sequence[DataLoss]) -> str:
    """Return the known events, and the possible reasons once for all partitions."""
    if all(finding.is_there for finding in findings):
        return "Partitions that the query has read are not in its subscription"
    reasons = []
    kinds = {finding.kind for finding in findings}
    if kinds & {DataLossKind.PARTITIONS_DELETED, DataLossKind.PARTITIONS_DELETED_AND_GROUP_ID_CONFIG_PRESENT}:
        reasons.append("the topic was deleted before all of it was processed, or left the subscription")
    if kinds & {
        DataLossKind.INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS,
        DataLossKind.ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO,
    }:
        reasons.append("it was removed by retention, or the topic was deleted before all of it was processed")
    back = [finding for finding in findings if finding.kind is DataLossKind.PARTITION_OFFSET_CHANGED]
    if back and all(finding.is_same_topic for finding in back):
        reasons.append("the log of the same topic was cut, or the start offset of the first batch is too high")
    elif back:
        reasons.append("the topic may have been recreated, or the start offset of the first batch is too high")
    return f"Some data may have been lost because it is not in Kafka any more: {'; or '.join(reasons)}"


def deleted_topic(topic: str, position: Mapping[TopicPartition, int]) -> DataLossError:
    """Build the error of a subscribed topic that the query has read, and that does not exist now.

    The caller raises it, or logs it if data loss is tolerated.
    """
    read = sorted((tp.partition, offset) for tp, offset in position.items() if tp.topic == topic)
    positions = listed([f"partition {number} up to {offset}" for number, offset in read], noun="partitions")
    return DataLossError(
        f"Topic '{topic}' does not exist any more, or this user may not describe it now: the brokers answer "
        f"UNKNOWN_TOPIC_OR_PARTITION (3). The query has read {positions}; what came after it is gone. "
        "Nothing more was read.",
        condition=DataLossKind.PARTITIONS_DELETED.condition,
        hint="Move the query to the beginning of a recreated topic with `pyspark-kafka checkpoint rewind` and "
        "--offsets (-2 is the beginning). Set failOnDataLoss to "
        "false to continue with the other topics, and with this one from its beginning if it comes back.",
        parameters={"topic": topic, "count": len(read)},
    )
