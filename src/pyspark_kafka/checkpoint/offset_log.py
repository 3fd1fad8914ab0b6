"""Spark's offset log and commit log: where each micro-batch of a query ends, and which ones are done.

Spark writes `offsets/N` before micro-batch N runs and `commits/N` after it, so one that is only in the first log is run
again, with the same ends. Read only; offsets are opaque text here, of any source.
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

# Version 2 names the sources; it is written where `spark.sql.streaming.offsetLog.formatVersion` is 2.
_OFFSET_LOG_VERSIONS = 2
# The JSON of versions 2 and 3 has more members, for state stores.
_COMMIT_LOG_VERSIONS = 3
# In the place of the offset of a source that has none yet.
_NO_OFFSET = "-"

_LOGS = ("offsets", "commits")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")
_VERSION_LINE = re.compile(r"v([1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True)
class OffsetSeq:
    """The end of a micro-batch: one offset for each source of the query.

    Attributes:
        batch_id: the number of the micro-batch; it begins where the one before it ends.
        metadata: what Spark notes about it: `batchWatermarkMs`, `batchTimestampMs`, `conf` and more; empty if it notes
            nothing.
        offsets: the JSON of each source's offset, exclusive; None if a source has none yet.
        sources: the names of the sources, in the order of `offsets`: "0", "1", … if the query does not name them. A
            source keeps its own files in `sources/<name>` of the checkpoint.
    """

    batch_id: int
    metadata: Mapping[str, Any] = field(hash=False)
    offsets: tuple[str | None, ...]
    sources: tuple[str, ...]

    def of_source(self, source: str | int = "0") -> str | None:
        """Return the offset of one source, by its name; None if it has none yet.

        Raises:
            CheckpointError: the query has no such source.
        """
        if str(source) not in self.sources:
            raise CheckpointError(
                f"Batch {self.batch_id} has no source {str(source)!r}; its sources are {', '.join(self.sources)}.",
                condition="CHECKPOINT_NO_SUCH_SOURCE",
                parameters={"batch_id": self.batch_id, "source": source},
            )
        return self.offsets[self.sources.index(str(source))]


@dataclass(frozen=True, slots=True)
class Commit:
    """A micro-batch that is done.

    Attributes:
        batch_id: the number of the micro-batch.
        metadata: what Spark notes about it: `nextBatchWatermarkMs` and more.
    """

    batch_id: int
    metadata: Mapping[str, Any] = field(hash=False)


class OffsetSeqLog:
    """The micro-batches that a query has begun.

    Runs on: driver, or any program; every call reads the files again.

    Args:
        files: the checkpoint.

    Source: Spark `OffsetSeqLog`, `OffsetSeq`, `OffsetMap`.
    """

    def __init__(self, files: CheckpointFiles) -> None:
        self._log = _Log(files, "offsets", _OFFSET_LOG_VERSIONS)

    def batch_ids(self) -> list[int]:
        """Return the numbers in order; Spark removes old ones (`spark.sql.streaming.minBatchesToRetain`).

        Raises:
            CheckpointError: there is no checkpoint at the location.
        """
        return self._log.batch_ids()

    def get(self, batch_id: int) -> OffsetSeq | None:
        """Return a micro-batch; None if the log does not have it.

        Raises:
            CheckpointError: the file cannot be read, is malformed, or was written by a newer version.
        """
        entry = self._log.read(batch_id)
        if entry is None:
            return None
        if entry.version == 1:
            names, texts = [str(number) for number in range(len(entry.lines))], list(entry.lines)
        else:
            names, texts = self._named(entry)
        offsets = tuple(None if text == _NO_OFFSET else text for text in texts)
        return OffsetSeq(batch_id, entry.metadata, offsets, tuple(names))

    def latest(self) -> OffsetSeq | None:
        """Return the newest micro-batch, committed or not; None if there is none.

        Raises:
            CheckpointError: as `get`.
        """
        batch_ids = self.batch_ids()
        return self.get(batch_ids[-1]) if batch_ids else None

    def _named(self, entry: _Entry) -> tuple[list[str], list[str]]:
        found: dict[str, str] = {}
        for line in entry.lines:
            name, colon, text = line.partition(":")
            if not colon or not name:
                raise self._log.malformed(entry.name, f"a line does not begin with the name of a source: {line[:80]!r}")
            if name in found:
                raise self._log.malformed(entry.name, f"it has two offsets of source {name!r}")
            found[name] = text
        # Spark writes them in the order of a hash map.
        names = sorted(found, key=lambda name: (int(name), "") if _NUMBER.fullmatch(name) else (-1, name))
        return names, [found[name] for name in names]


class CommitLog:
    """The micro-batches that a query has finished.

    Runs on: driver, or any program; every call reads the files again.

    Args:
        files: the checkpoint.

    Source: Spark `CommitLog`.
    """

    def __init__(self, files: CheckpointFiles) -> None:
        self._log = _Log(files, "commits", _COMMIT_LOG_VERSIONS)

    def batch_ids(self) -> list[int]:
        """Return the numbers in order. A query with asynchronous progress tracking skips some.

        Raises:
            CheckpointError: there is no checkpoint at the location.
        """
        return self._log.batch_ids()

    def get(self, batch_id: int) -> Commit | None:
        """Return a micro-batch; None if the log does not have it.

        Raises:
            CheckpointError: the file cannot be read, is malformed, or was written by a newer version.
        """
        entry = self._log.read(batch_id)
        return None if entry is None else Commit(batch_id, entry.metadata)

    def latest(self) -> Commit | None:
        """Return the newest finished micro-batch; None if there is none.

        Raises:
            CheckpointError: as `get`.
        """
        batch_ids = self.batch_ids()
        return self.get(batch_ids[-1]) if batch_ids else None


@dataclass(frozen=True, slots=True)
class _Entry:
    """One file of a log: its version, its metadata, and the lines after these two."""

    name: str
    version: int
    metadata: dict[str, Any]
    lines: tuple[str, ...]


class _Log:
    """A directory with one file for each micro-batch, named by its number."""

    def __init__(self, files: CheckpointFiles, directory: str, versions: int) -> None:
        self._files = files
        self._directory = directory
        self._versions = versions

    def batch_ids(self) -> list[int]:
        names = self._files.list(self._directory)
        if not names:
            self._check_location()
        return sorted(int(name) for name in names if _NUMBER.fullmatch(name))

    def _check_location(self) -> None:
        """Raise if the location is not a checkpoint: a misspelled one would look like a new query."""
        if "metadata" in self._files.list() or any(map(self._files.list, _LOGS)):
            return
        raise CheckpointError(
            f"There is no checkpoint of a streaming query at {self._files.shown}: no file metadata, and no batch in "
            f"{' or '.join(_LOGS)}. Nothing was read.",
            condition="CHECKPOINT_NOT_FOUND",
            hint="Use the checkpointLocation of the query, not a directory above or below it.",
            parameters={"location": self._files.shown},
        )

    def read(self, batch_id: int) -> _Entry | None:
        name = f"{self._directory}/{batch_id}"
        data = self._files.read(name)
        if data is None:
            return None
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise self.malformed(name, f"it is not text in UTF-8 ({error.reason} at byte {error.start})") from error
        # Not splitlines: it splits at characters that JSON may contain.
        lines = text.removesuffix("\n").split("\n")
        version = self._version(name, lines[0])
        if len(lines) < 2:
            raise self.malformed(name, "it ends after its version; was it written to its end?")
        return _Entry(name, version, self._metadata(name, lines[1]), tuple(lines[2:]))

    def _version(self, name: str, line: str) -> int:
        found = _VERSION_LINE.fullmatch(line)
        if found is None:
            raise self.malformed(name, f"it does not begin with a version such as v1, but with {line[:40]!r}")
        version = int(found[1])
        if version > self._versions:
            raise CheckpointError(
                f"{name} of checkpoint {self._files.shown} was written by a newer version: its format is {line}, and "
                f"this version reads v1 to v{self._versions}. Nothing was read.",
                condition="CHECKPOINT_VERSION",
                hint="Use the version that wrote the checkpoint, or a newer one.",
                parameters={
                    "location": self._files.shown,
                    "name": name,
                    "found": line,
                    "supported": f"v{self._versions}",
                },
            )
        return version

    def _metadata(self, name: str, line: str) -> dict[str, Any]:
        # Spark before 2.2 wrote no metadata, but the line.
        if not line.strip():
            return {}
        try:
            metadata = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise self.malformed(name, f"its metadata are not JSON ({error})") from error
        if not isinstance(metadata, dict):
            raise self.malformed(name, "its metadata are not a JSON object")
        return metadata

    def malformed(self, name: str, reason: str) -> CheckpointError:
        return CheckpointError(
            f"{name} of checkpoint {self._files.shown} is malformed: {reason}.",
            condition="CHECKPOINT_LOG_INVALID",
            hint="Restore the checkpoint from a copy, or check that the location is a checkpoint of a Spark query.",
            parameters={"location": self._files.shown, "name": name, "reason": reason},
        )
