"""The initial offsets of a query, resolved once and kept in its checkpoint, byte for byte as Spark keeps them.

The codec, and the log on top of `CheckpointFiles`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka.checkpoint.files import CheckpointFiles

VERSION = 1
_NAME = "0"
_VERSION_LINE = re.compile(r"v([1-9][0-9]{0,9})")


def encode(offset: KafkaSourceOffset) -> bytes:
    r"""Return the bytes of the file.

    Example:
        >>> encode(KafkaSourceOffset.from_json('{"t":{"0":7}}'))
        b'\x00v1\n{"t":{"0":7}}'

    Source: Spark `KafkaSourceInitialOffsetWriter`, SPARK-19517.
    """
    return b"\0" + f"v{VERSION}\n{offset.json()}".encode()


def decode(data: bytes, file: str = "the initial-offset log") -> KafkaSourceOffset:
    """Read the bytes of the file, also a file of Spark 2.1.0, which has no version.

    Args:
        data: the content of the file.
        file: the file, for errors.

    Raises:
        CheckpointError: the bytes are malformed, or of a newer version.
    """
    # Spark 2.1.0 put the length of the JSON into the first byte; later ones put a zero there, so that it fails.
    try:
        text = data[1:].decode()
    except UnicodeDecodeError as error:
        raise _malformed(file, f"it is not text in UTF-8 ({error.reason} at byte {error.start + 1})") from error
    if not text:
        raise _malformed(file, f"it has {len(data)} bytes and no offsets")
    if text.startswith("v"):
        line, newline, text = text.partition("\n")
        if not newline:
            raise _malformed(file, "failed to detect the log file version line")
        _check_version(line, file)
    try:
        return KafkaSourceOffset.from_json(text)
    except CheckpointError as error:
        raise error.located(file) from error


class InitialOffsetLog:
    """The file that keeps where a query began.

    If the file exists, it takes precedence over the starting options, also before the first micro-batch is committed.

    Runs on: driver.

    Args:
        files: the checkpoint.
        directory: the source's own directory below it; Spark numbers the sources of a query from 0.

    Source: Spark `KafkaSourceInitialOffsetWriter`, `KafkaMicroBatchStream.getOrCreateInitialPartitionOffsets`.
    """

    def __init__(self, files: CheckpointFiles, directory: str = "sources/0") -> None:
        self._files = files
        self._name = f"{directory}/{_NAME}" if directory else _NAME

    def __repr__(self) -> str:
        return f"InitialOffsetLog({self._file})"

    def get(self) -> KafkaSourceOffset | None:
        """Return the offsets; None if there is no file yet.

        Raises:
            CheckpointError: the file cannot be read, is malformed, or is of a newer version.
        """
        data = self._files.read(self._name)
        return None if data is None else decode(data, self._file)

    def get_or_create(self, resolve: Callable[[], KafkaSourceOffset]) -> KafkaSourceOffset:
        """Return the offsets of the file; if there is none, resolve the offsets and write it.

        If another process writes the file in the meantime, its offsets are returned.

        Raises:
            CheckpointError: as `get`, or the file cannot be written.
        """
        kept = self.get()
        if kept is not None:
            return kept
        resolved = resolve()
        if self._files.create(self._name, encode(resolved)):
            return resolved
        kept = self.get()
        if kept is None:
            raise CheckpointError(
                f"{self._file} existed when this process was about to write it, and does not exist now. Nothing was "
                "read.",
                condition="CHECKPOINT_CHANGED",
                hint="Make sure that only one query uses this checkpoint, and start the query again.",
            )
        return kept

    @property
    def _file(self) -> str:
        return f"file {self._name} of checkpoint {self._files.shown}"


def _check_version(line: str, file: str) -> None:
    found = _VERSION_LINE.fullmatch(line)
    if found is None:
        raise _malformed(file, f"failed to read correct log version from {line[:40]!r}")
    if int(found[1]) > VERSION:
        raise CheckpointError(
            f"{file}: maximum supported log version is v{VERSION}, but encountered {line}. The log file was produced "
            "by a newer version and cannot be read by this version. Nothing was read.",
            condition="CHECKPOINT_VERSION",
            hint="Run the query with the version that wrote the checkpoint, or a newer one.",
            parameters={"found": line, "supported": f"v{VERSION}"},
        )


def _malformed(file: str, reason: str) -> CheckpointError:
    return CheckpointError(
        f"{file}: Log file was malformed: {reason}. Nothing was read.",
        condition="CHECKPOINT_OFFSET_INVALID",
        hint="Restore the checkpoint from a copy, or start the query with a new checkpointLocation.",
        parameters={"reason": reason},
    )
