"""Offsets that a source keeps itself: written atomically, and never a restart from the beginning by mistake."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.connector import MicroBatchStream, Offset
from pyspark_kafka.errors import CheckpointError, ConnectorError, ContractError

_HEADER = "offset v1"
_INITIAL = "initial-offset"
_COMMITTED = "committed-offset"


class OffsetStore:
    """Two offsets of one source, as files: where it began, and what was committed last.

    A file holds a line with its version, the JSON of the offset, and a line with the length of the JSON, so that a file
    that was cut short is noticed. It is written beside its place, flushed, and renamed.

    Runs on: driver; plain data that pickles; methods block on the file system.

    Args:
        location: a directory of this source alone: a local path, or a URI that `pyarrow.fs` knows.
        deserialize: makes an offset of its JSON, as `MicroBatchStream.deserializeOffset`.
    """

    def __init__(self, location: str, deserialize: Callable[[str], Offset]) -> None:
        self._files = CheckpointFiles(location)
        self._deserialize = deserialize

    def initial(self, resolve: Callable[[], Offset]) -> Offset:
        """Return the offset that this source began with: `resolve()` the first time, the kept one ever after.

        Raises:
            CheckpointError: the file is there and is not readable; `resolve` is not called then.
        """
        kept = self._read(_INITIAL)
        if kept is None:
            found = resolve()
            if self._files.create(_INITIAL, _encode(found)):
                return found
            # Another driver was first; its offset counts.
            kept = self._read(_INITIAL)
        if kept is None:
            raise self._unreadable(_INITIAL, "it was removed while it was read")
        return kept

    def committed(self) -> Offset | None:
        """Return the last committed offset; None if none was.

        Raises:
            CheckpointError: the file is there and is not readable.
        """
        return self._read(_COMMITTED)

    def commit(self, end: Offset) -> None:
        """Keep `end` in place of the previous committed offset; durable when it returns."""
        self._files.replace(_COMMITTED, _encode(end))

    def _read(self, name: str) -> Offset | None:
        data = self._files.read(name)
        if data is None:
            return None
        try:
            header, text, length = data.decode().split("\n")[:3]
            if header != _HEADER:
                raise ValueError(f"it begins with {header[:20]!r}, not {_HEADER!r}")  # noqa: TRY301
            if length != str(len(text)):
                raise ValueError("it was cut short or changed")  # noqa: TRY301
            return self._deserialize(text)
        except (ValueError, ConnectorError) as error:
            raise self._unreadable(name, str(error)) from error

    def _unreadable(self, name: str, why: str) -> CheckpointError:
        return CheckpointError(
            f"Offset file {name} below {self._files.shown} is not readable: {why}. Nothing was read; the source "
            "does not begin again from its start.",
            condition="OFFSET_FILE_INVALID",
            hint="Restore the file from a copy. Remove it only if the source may begin again.",
            parameters={"location": self._files.shown, "name": name},
        )


def _encode(offset: Offset) -> bytes:
    text = offset.json()
    if "\n" in text:
        raise ContractError.violated(offset, "json", "must return one line of text.")
    return f"{_HEADER}\n{text}\n{len(text)}\n".encode()


class CheckpointedMicroBatchStream(MicroBatchStream):
    """A stream that finds its start once, and keeps what was committed.

    Spark requests the initial offset again if the first micro-batch was planned and not committed; a source that then
    finds a later one loses rows. A subclass implements `firstOffset` in place of `initialOffset`, and the rest of
    `MicroBatchStream`.

    Args:
        location: a directory of this source alone.
    """

    def __init__(self, location: str) -> None:
        self._store = OffsetStore(location, self.deserializeOffset)

    @abstractmethod
    def firstOffset(self) -> Offset:
        """Return the offset that a new query starts from. Called once in the life of a checkpoint."""

    def initialOffset(self) -> Offset:
        """Return the offset that this query began with."""
        return self._store.initial(self.firstOffset)

    def commit(self, end: Offset) -> None:
        """Keep what was committed, and take note in a subclass that calls this."""
        self._store.commit(end)

    def committedOffset(self) -> Offset | None:
        """Return the last committed offset; None if none was."""
        return self._store.committed()
