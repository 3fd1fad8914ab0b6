"""Notices topics that were deleted and created again under the same name. Layer: source."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyspark_kafka.errors import CheckpointError, DataLossError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark_kafka.checkpoint.files import CheckpointFiles

_VERSION = 1
_FILE = "topic-ids"
_VERSION_LINE = re.compile(r"v[1-9][0-9]{0,9}")


@dataclass(frozen=True, slots=True)
class TopicIdentities:
    """Which topics a query has read.

    Attributes:
        ids: the id of each topic, by name.
        restart_end: JSON of the end of the last batch that began topics anew; empty if there was none.
        restarted: the topics that begin anew in that batch.
    """

    ids: Mapping[str, str] = field(default_factory=dict)
    restart_end: str = ""
    restarted: tuple[str, ...] = ()

    def to_bytes(self) -> bytes:
        """Give the content of the file beside the checkpoint."""
        restart = {"end": self.restart_end, "topics": list(self.restarted)} if self.restarted else None
        value = {"topics": dict(sorted(self.ids.items())), "restart": restart}
        return f"v{_VERSION}\n{json.dumps(value, ensure_ascii=False)}\n".encode()

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> TopicIdentities:
        """Read the file back.

        Raises:
            CheckpointError: it is of a newer version, or no such file; `where` is named.
        """
        version, _, text = data.decode(errors="replace").partition("\n")
        if version != f"v{_VERSION}":
            if _VERSION_LINE.fullmatch(version):
                raise _too_new(where, version)
            raise _damaged(where, f"it begins with {version[:20]!r}, not with v{_VERSION}")
        try:
            value: dict[str, Any] = json.loads(text)
            restart = value["restart"] or {"end": "", "topics": []}
            return cls(
                {str(topic): str(topic_id) for topic, topic_id in value["topics"].items()},
                str(restart["end"]),
                tuple(map(str, restart["topics"])),
            )
        except json.JSONDecodeError as error:
            raise _damaged(where, f"{error.msg.removesuffix(' at')} at character {error.pos} of {len(text)}") from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise _damaged(where, "its JSON does not hold what was written there") from error


class TopicWatch:
    """Remembers the ids of a query's topics, so that offsets are not taken for those of another topic of the same name.

    Offsets alone do not show it: the new topic's end may be higher than the old one's was. Ids are kept in memory for
    this run, and beyond it in the checkpoint where its place is known; never in the offsets, which Spark's own
    connector must be able to read.

    Runs on: driver, one per query run.

    Args:
        files: the query's checkpoint; None where it is not known.
        directory: the source's own directory in it.

    Source: KIP-516, topic ids.
    """

    def __init__(self, files: CheckpointFiles | None, directory: str) -> None:
        self._files = files
        self._name = f"{directory}/{_FILE}"
        self._kept: TopicIdentities | None = None

    @property
    def ids(self) -> Mapping[str, str]:
        """Give the ids of the topics that the query reads, by name, as far as brokers tell them."""
        return self._identities().ids

    def meet(self, topic_ids: Mapping[str, str], position: Iterable[str] = ()) -> None:
        """Remember the ids of topics that are new to the query; what it has left behind is forgotten.

        A topic that is not in the position is new, also where one of its name was read before.

        Args:
            topic_ids: the ids of the topics that the subscription means now.
            position: the topics that the query stands in.

        Raises:
            CheckpointError: the file beside the checkpoint cannot be read or written.
        """
        kept, stands_in = self._identities(), set(position)
        ids = {topic: topic_id for topic, topic_id in kept.ids.items() if topic in stands_in}
        ids.update({topic: topic_id for topic, topic_id in topic_ids.items() if topic not in ids})
        if ids != kept.ids:
            self._keep(replace(kept, ids=ids))

    def recreated(self, topic_ids: Mapping[str, str], topics: Iterable[str]) -> tuple[str, ...]:
        """Give those of `topics` whose id is another one than the query has read, sorted."""
        ids = self._identities().ids
        return tuple(
            sorted(
                topic for topic in set(topics) if topic in ids and topic in topic_ids and topic_ids[topic] != ids[topic]
            )
        )

    def restart(self, topics: Iterable[str], topic_ids: Mapping[str, str], end: str) -> None:
        """Note that `topics` begin anew in the batch that ends at `end`, before any task reads it.

        The batch is known by its end, so that it reads the same again when it is planned again after a crash.
        """
        again = tuple(sorted(topics))
        kept = self._identities()
        ids = {**kept.ids, **{topic: topic_ids[topic] for topic in again}}
        self._keep(TopicIdentities(ids, end, again))

    def restarting(self, end: str) -> tuple[str, ...]:
        """Give the topics that begin anew in the batch that ends at `end`."""
        kept = self._identities()
        return kept.restarted if kept.restarted and kept.restart_end == end else ()

    def error(self, topics: Iterable[str], topic_ids: Mapping[str, str]) -> DataLossError:
        """Build the error about topics that are others now; to be raised, or logged where loss is tolerated."""
        ids = self._identities().ids
        listed = ", ".join(f"'{topic}' (id {ids[topic]} before, {topic_ids[topic]} now)" for topic in topics)
        return DataLossError(
            f"Topics were deleted and created again under the same name: {listed}. The offsets of the query are the "
            "former topics'; what was left to read in those is gone. This batch has read nothing yet.",
            condition="KAFKA_DATA_LOSS.TOPIC_RECREATED",
            hint="Set failOnDataLoss to false for one run to read the new topics from their beginning, or start with a "
            "new checkpointLocation.",
            facts={"topics": ", ".join(topics)},
        )

    def _identities(self) -> TopicIdentities:
        if self._kept is None:
            data = None if self._files is None else self._files.read(self._name)
            self._kept = TopicIdentities() if data is None else TopicIdentities.from_bytes(data, self._where)
        return self._kept

    def _keep(self, identities: TopicIdentities) -> None:
        if self._files is not None:
            self._files.replace(self._name, identities.to_bytes())
        self._kept = identities

    @property
    def _where(self) -> str:
        return f"file {self._name} of checkpoint {'' if self._files is None else self._files.shown}"


def _too_new(where: str, version: str) -> CheckpointError:
    return CheckpointError(
        f"The ids of the query's topics cannot be read from {where}: it was written by a newer version, as {version}; "
        f"this one reads v{_VERSION}. Nothing was read.",
        condition="CHECKPOINT_VERSION",
        hint="run the query with the version of pyspark-kafka that wrote the checkpoint, or a newer one.",
        facts={"found": version, "supported": f"v{_VERSION}"},
    )


def _damaged(where: str, reason: str) -> CheckpointError:
    return CheckpointError(
        f"The ids of the query's topics cannot be read from {where}: it is damaged: {reason}. Nothing was read.",
        condition="CHECKPOINT_TOPIC_IDS_INVALID",
        hint="restore the file from a copy of the checkpoint. If there is none, remove it, but only if no topic of the "
        "query was deleted and created again since its last batch: the query then takes the topics of this moment for "
        "those that it has read, and goes on at its old offsets in a new topic without an error.",
        facts={"reason": reason},
    )
