"""The target of what a checkpoint, and a topic of commit markers, hand to the driver and to tasks."""

from __future__ import annotations

import struct
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fuzzing.draw import Draw
from fuzzing.oracles import require
from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka._connector.sink.commit_marker import CommitMarker
from pyspark_kafka._connector.sink.driver.lane_record_file import LaneRecordFile
from pyspark_kafka.checkpoint import CommitLog, OffsetSeqLog
from pyspark_kafka.checkpoint.state_files import VersionChain, VersionReader
from pyspark_kafka.checkpoint.state_names import StateVersion
from pyspark_kafka.checkpoint.topic_ids import TopicIdentities
from pyspark_kafka.continuous.epochs.epoch_files import EpochFiles
from pyspark_kafka.continuous.state.versions import StateVersions
from pyspark_kafka.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark_kafka.records._variant import Kernel

_STATE_HEAD = struct.Struct(">4sI")
_STATE_MAGIC = b"PKS1"
_VERSION = StateVersion(1, "a", 1)


class OneFile:
    """A checkpoint in which each file has the same content."""

    shown = "memory"

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, name: str) -> bytes:  # noqa: ARG002 - as CheckpointFiles
        """Return the content."""
        return self._data

    def list(self, directory: str = "") -> list[str]:
        """Return the names that the readers look for."""
        return ["metadata", "7"] if directory else ["metadata"]


def checkpoint(data: bytes, variants: Sequence[Kernel]) -> None:  # noqa: ARG001 - every target is called alike
    """One byte for the file, then its content: it is read, or an error of ours says that it is damaged."""
    draw = Draw(data)
    reader = draw.pick(READERS)
    with suppress(ConnectorError):
        reader(draw.rest())


def state_part(content: bytes) -> None:
    """Read a file of a state whose checksum is right, as one that somebody has made has."""
    framed = _STATE_HEAD.pack(_STATE_MAGIC, zlib.crc32(content)) + content
    states = _states(framed)
    for file in states.read("0/g", VersionChain(None, 0, (_VERSION,))):
        # Every byte of it is read here.
        found = sum(len(key) + len(value or b"") for key, value in states.changes("0/g", file))
        require(found <= len(content), f"a file of {len(content)} bytes has keys and values of {found}")


def state_note(content: bytes) -> None:
    """Read how many parts a state has."""
    _states(content)._whole_parts("0/g", _VERSION)  # noqa: SLF001 - what `chain` calls for a name that is listed


def epoch_files(content: bytes) -> None:
    """Read what a continuous query keeps of its epochs."""
    epochs = EpochFiles(_files(content))
    for read in (epochs.query_id, lambda: epochs.prepared_messages(7, "{}"), lambda: epochs.prepared_state(7)):
        with suppress(ConnectorError):
            read()


def state_versions(content: bytes) -> None:
    """Read the versions of states; the caller catches both errors."""
    with suppress(ValueError, RecursionError):
        versions = StateVersions.parse(content.decode(errors="replace"))
        require(StateVersions.parse(versions.json()) == versions, "versions are others after a way through JSON")


def logs(content: bytes) -> None:
    """Read a micro-batch of Spark's logs, and the source offset in it."""
    with suppress(ConnectorError):
        CommitLog(_files(content)).get(7)
    entry = OffsetSeqLog(_files(content)).get(7)
    for offset in entry.offsets if entry is not None else ():
        if offset is not None:
            found = KafkaSourceOffset.from_json(offset)
            require(KafkaSourceOffset.from_json(found.json()) == found, "an offset is another one after its JSON")


def lane_record(content: bytes) -> None:
    """Read what is known of the transactions of lanes."""
    LaneRecordFile(_files(content)).read()


def topic_ids(content: bytes) -> None:
    """Read the ids of topics."""
    TopicIdentities.from_bytes(content, "topic-ids")


def marker(content: bytes) -> None:
    """Read a commit marker."""
    found = CommitMarker.from_bytes(content, "t-0@1")
    require(CommitMarker.from_bytes(found.to_bytes(), "t-0@1") == found, "a marker is another one after its JSON")


def _files(content: bytes) -> Any:
    return OneFile(content)


def _states(content: bytes) -> VersionReader:
    return VersionReader(_files(content))


READERS: tuple[Callable[[bytes], None], ...] = (
    state_part,
    state_note,
    epoch_files,
    state_versions,
    logs,
    lane_record,
    topic_ids,
    marker,
)
