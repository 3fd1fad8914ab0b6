"""The checkpoint's file for the transactions of a continuous query."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._connector.sink.source_positions import LaneRecord
from pyspark_kafka.checkpoint.continuous_files import OWNER, read_owner
from pyspark_kafka.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka.checkpoint.files import CheckpointFiles

NAME = "continuous/transactions"
_VERSION = 1
# Each is fenced before a run: a larger number is not one that this program has written.
_MAX_LANES = 1_000_000


class LaneRecordFile:
    """The record in a file of the checkpoint, which is replaced as a whole.

    Runs on: driver; methods block on the file system.

    Args:
        files: the checkpoint.

    Raises:
        CheckpointError: by every method: the file cannot be read or written, or is malformed.
    """

    def __init__(self, files: CheckpointFiles) -> None:
        self._files = files

    def start(self) -> str | None:
        """Return the id of the query start that owns the checkpoint; None without an owner."""
        return read_owner(self._files.read(OWNER))

    def read(self) -> LaneRecord | None:
        """Return the record; None if the query has never run in this mode."""
        data = self._files.read(NAME)
        if data is None:
            return None
        try:
            parsed = json.loads(data)
            if parsed["v"] != _VERSION:
                raise ValueError(f"its version is {parsed['v']}")  # noqa: TRY301 - one place says what is wrong
            partitions, left = (_parse_ids(topics) for topics in (parsed["topics"], parsed.get("left", {})))
            lanes = int(parsed["lanes"])
            if not 0 <= lanes <= _MAX_LANES:
                raise ValueError(f"it has {lanes} lanes")  # noqa: TRY301 - as above
            former = {
                TopicPartition(topic, int(number)): int(offset)
                for topic, offsets in parsed.get("former", {}).items()
                for number, offset in offsets.items()
            }
            owner, group_id, prefix = (str(parsed[name]) for name in ("owner", "group", "prefix"))
            return LaneRecord(owner, group_id, prefix, lanes, partitions, former, left)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
            raise CheckpointError(
                f"{NAME} of checkpoint {self._files.shown} is malformed: {error!r}. Nothing was read.",
                condition="CHECKPOINT_LOG_INVALID",
                hint="Restore the checkpoint from a copy, or start the query with a new checkpointLocation.",
                parameters={"location": self._files.shown, "name": NAME},
            ) from error

    def write(self, record: LaneRecord) -> None:
        """Replace the record: durable when it returns."""
        former: dict[str, dict[str, int]] = {}
        for topic_partition, offset in sorted(record.former.items()):
            former.setdefault(topic_partition.topic, {})[str(topic_partition.partition)] = offset
        value = {
            "v": _VERSION,
            "owner": record.owner,
            "group": record.group_id,
            "prefix": record.prefix,
            "lanes": record.lanes,
            "topics": _ids_by_topic(record.partitions),
            **({"former": former} if former else {}),
            **({"left": _ids_by_topic(record.left)} if record.left else {}),
        }
        self._files.replace(NAME, json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


def _parse_ids(topics: Mapping[str, Any]) -> dict[TopicPartition, str]:
    return {
        TopicPartition(topic, int(number)): str(entry["id"])
        for topic, entry in topics.items()
        for number in entry["partitions"]
    }


def _ids_by_topic(partitions: Mapping[TopicPartition, str]) -> dict[str, dict[str, object]]:
    topics: dict[str, dict[str, object]] = {}
    numbers: dict[str, list[int]] = {}
    for topic_partition, topic_id in sorted(partitions.items()):
        numbers.setdefault(topic_partition.topic, []).append(topic_partition.partition)
        topics[topic_partition.topic] = {"id": topic_id, "partitions": numbers[topic_partition.topic]}
    return topics
