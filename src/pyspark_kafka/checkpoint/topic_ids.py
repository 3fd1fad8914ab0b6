"""The ids of a query's topics, in a file of ours next to Spark's source files.

The codec, and the file on top of `CheckpointFiles`. Which ids belong there is decided in
`pyspark_kafka._connector.source.driver.topic_watch`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark_kafka.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka.checkpoint.files import CheckpointFiles

_VERSION = 1
_NAME = "topic-ids"
_VERSION_LINE = re.compile(r"v[1-9][0-9]{0,9}")


@dataclass(frozen=True, slots=True)
class TopicIdentities:
    """The identities of the topics that a query has read.

    Attributes:
        ids: the id of each topic, by name.
        restart_end: JSON of the end of the last batch that begins recreated topics; empty if there was none.
        restarted: the topics that this batch reads from their beginning.
    """

    ids: Mapping[str, str] = field(default_factory=dict)
    restart_end: str = ""
    restarted: tuple[str, ...] = ()

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        restart = {"end": self.restart_end, "topics": list(self.restarted)} if self.restarted else None
        value = {"topics": dict(sorted(self.ids.items())), "restart": restart}
        return f"v{_VERSION}\n{json.dumps(value, ensure_ascii=False)}\n".encode()

    @classmethod
    def from_bytes(cls, data: bytes, file: str) -> TopicIdentities:
        """Read the content of the file.

        Args:
            data: the content.
            file: the file, for errors.

        Raises:
            CheckpointError: the content is of a newer version, or damaged.
        """
        version, _, text = data.decode(errors="replace").partition("\n")
        if version != f"v{_VERSION}":
            if _VERSION_LINE.fullmatch(version):
                raise _too_new(file, version)
            raise _damaged(file, f"it begins with {version[:20]!r}, not with v{_VERSION}")
        try:
            value: dict[str, Any] = json.loads(text)
            restart = value["restart"] or {"end": "", "topics": []}
            return cls(
                {str(topic): str(topic_id) for topic, topic_id in value["topics"].items()},
                str(restart["end"]),
                tuple(map(str, restart["topics"])),
            )
        except json.JSONDecodeError as error:
            raise _damaged(file, f"{error.msg.removesuffix(' at')} at character {error.pos} of {len(text)}") from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise _damaged(file, "its JSON does not have the members that are written there") from error


class TopicIdsFile:
    """The file that holds the topic ids of one source of a query.

    Runs on: driver; blocks on the file system.

    Args:
        files: the checkpoint.
        directory: the source's own directory below it; empty if the location itself is that.
    """

    def __init__(self, files: CheckpointFiles, directory: str) -> None:
        self._files = files
        self._name = f"{directory}/{_NAME}" if directory else _NAME

    def read(self) -> TopicIdentities:
        """Return the identities in the file; empty ones if there is no file.

        Raises:
            CheckpointError: the file cannot be read, is damaged, or is of a newer version.
        """
        data = self._files.read(self._name)
        if data is None:
            return TopicIdentities()
        return TopicIdentities.from_bytes(data, f"file {self._name} of checkpoint {self._files.shown}")

    def replace(self, identities: TopicIdentities) -> None:
        """Write the identities in place of the previous ones.

        Raises:
            CheckpointError: the file cannot be written.
        """
        self._files.replace(self._name, identities.to_bytes())


def _too_new(file: str, version: str) -> CheckpointError:
    return CheckpointError(
        f"The ids of the query's topics cannot be read from {file}: it was written by a newer version, as {version}; "
        f"this one reads v{_VERSION}. Nothing was read.",
        condition="CHECKPOINT_VERSION",
        hint="Run the query with the version of pyspark-kafka that wrote the checkpoint, or a newer one.",
        parameters={"found": version, "supported": f"v{_VERSION}"},
    )


def _damaged(file: str, reason: str) -> CheckpointError:
    return CheckpointError(
        f"The ids of the query's topics cannot be read from {file}: it is damaged: {reason}. Nothing was read.",
        condition="CHECKPOINT_TOPIC_IDS_INVALID",
        hint="Restore the file from a copy of the checkpoint. If there is none, remove it, but only if no topic of the "
        "query was recreated since its last batch: without the file the query assumes that the current topics are the "
        "topics that it has read, and continues at its old offsets in a recreated topic without an error.",
        parameters={"reason": reason},
    )
