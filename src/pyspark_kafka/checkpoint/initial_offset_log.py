"""The initial offsets of a query, resolved once and kept beside its checkpoint, byte for byte as Spark keeps them.

A codec without I/O, and the log on top of `CheckpointFiles`. Where offsets come from is not known here. Layer: source.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark_kafka.errors import CheckpointError
from pyspark_kafka.offsets import KafkaSourceOffset

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka.checkpoint.files import CheckpointFiles

VERSION = 1
_NAME = "0"
_VERSION_LINE = re.compile(r"v([1-9][0-9]{0,9})")


def encode(offset: KafkaSourceOffset) -> bytes:
    r"""Give the bytes of the file.

    Example:
        >>> encode(KafkaSourceOffset.from_json('{"t":{"0":7}}'))
        b'\x00v1\n{"t":{"0":7}}'

    Source: Spark `KafkaSourceInitialOffsetWriter`, SPARK-19517.
    """
    return b"\0" + f"v{VERSION}\n{offset.json()}".encode()


def decode(data: bytes, where: str = "the initial-offset log") -> KafkaSourceOffset:
    """Read the bytes of the file; also those of Spark 2.1.0, which have no version.

    Args:
        data: the whole file.
        where: the file, for errors.

    Raises:
        CheckpointError: the bytes are malformed, or of a newer version.
    """
    # Spark 2.1.0 put the length of the JSON into the first byte; later ones put a zero there, so that it fails.
    try:
        text = data[1:].decode()
    except UnicodeDecodeError as error:
        raise _malformed(where, f"it is not text in UTF-8 ({error.reason} at byte {error.start + 1})") from error
    if not text:
        raise _malformed(where, f"it has {len(data)} bytes and no offsets")
    if text.startswith("v"):
        line, newline, text = text.partition("\n")
        if not newline:
            raise _malformed(where, "failed to detect the log file version line")
        _check_version(line, where)
    try:
        return KafkaSourceOffset.from_json(text)
    except CheckpointError as error:
        raise error.located(where) from error


class InitialOffsetLog:
    """The file that holds where a query began, for good.

    Once it is there it goes before the starting options, also before the first batch is committed.

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
        return f"InitialOffsetLog({self._where})"

    def get(self) -> KafkaSourceOffset | None:
        """Give the offsets; None when none are kept yet.

        Raises:
            CheckpointError: the file cannot be read, is malformed, or is of a newer version.
        """
        data = self._files.read(self._name)
        return None if data is None else decode(data, self._where)

    def get_or_create(self, resolve: Callable[[], KafkaSourceOffset]) -> KafkaSourceOffset:
        """Give the offsets that are kept; where there are none, resolve them and keep them.

        When another process keeps its offsets in the meantime, those are given.

        Raises:
            CheckpointError: as from `get`, or the file cannot be written.
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
                f"{self._where} was there when this process was to write it, and is gone now. Nothing was read.",
                condition="CHECKPOINT_CHANGED",
                hint="something else changes this checkpoint; see that one query uses it, and start again.",
            )
        return kept

    @property
    def _where(self) -> str:
        return f"file {self._name} of checkpoint {self._files.shown}"


def _check_version(line: str, where: str) -> None:
    found = _VERSION_LINE.fullmatch(line)
    if found is None:
        raise _malformed(where, f"failed to read correct log version from {line[:40]!r}")
    if int(found[1]) > VERSION:
        raise CheckpointError(
            f"{where}: maximum supported log version is v{VERSION}, but encountered {line}. The log file was produced "
            "by a newer version and cannot be read by this version. Nothing was read.",
            condition="CHECKPOINT_VERSION",
            hint="run the query with the version that wrote the checkpoint, or a newer one.",
            facts={"found": line, "supported": f"v{VERSION}"},
        )


def _malformed(where: str, reason: str) -> CheckpointError:
    return CheckpointError(
        f"{where}: Log file was malformed: {reason}. Nothing was read.",
        condition="CHECKPOINT_OFFSET_INVALID",
        hint="restore the checkpoint from a copy, or start the query with a new checkpointLocation.",
        facts={"reason": reason},
    )
