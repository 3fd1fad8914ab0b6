"""The lines of Spark's event logs as Spark writes them: one file, or a directory of them, compressed or not.

Spark 4 writes a directory by default, `eventlog_v2_<application>`, whose files `events_<number>_<application>` it
compresses with zstd. Memory is bounded: a line that is too long for a progress is cut.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pyspark_kafka.errors import ConnectorError, listed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_EVENTS = re.compile(r"events_(\d+)_")
_APPLICATION = "eventlog_v2_"
# The first bytes of a file, and its decompressor. Other forms are Spark's own, which only Java's libraries can read.
_CODECS = {b"\x28\xb5\x2f\xfd": "zstd", b"\x1f\x8b": "gzip", b"\x04\x22\x4d\x18": "lz4"}
_UNREADABLE = {b"LZ4Block": "lz4 in Java's blocks", b"\x82SNAPPY\x00": "snappy", b"ZV": "lzf"}
# A file that is written at the moment may end within a frame: at most this size of its text is left out.
_CHUNK = 1024
# A progress is some kilobytes, and the plan of a query may be megabytes.
_MAX_LINE = 16 * 1024 * 1024


def event_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a progress file, of an event log, or of a rolling event log's files in their order.

    Runs on: any program; blocks on the file system.

    Raises:
        ConnectorError: a file has an unsupported compression, or a directory is not an event log.
        OSError: a file cannot be read.
    """
    for file in _files(path):
        yield from _lines(file)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    names = sorted(each.name for each in path.iterdir())
    numbered = [(int(found[1]), name) for name in names if (found := _EVENTS.match(name))]
    if numbered:
        return [path / name for _, name in sorted(numbered)]
    logs = [name for name in names if name.startswith((_APPLICATION, "app-", "application_", "local-"))]
    raise ConnectorError(
        f"The directory of --progress, {path}, has no files 'events_…' of Spark's event log. No page was written.",
        condition="REPORT_PROGRESS_INVALID",
        hint=f"Pass the event log of one application, such as {listed([str(path / name) for name in logs[-3:]])}."
        if logs
        else "Pass the directory of one application, which Spark calls eventlog_v2_ and its id.",
        parameters={"file": path},
    )


def _lines(file: Path) -> Iterator[str]:
    with file.open("rb") as raw:
        begin = raw.peek(8)
        for magic, name in _UNREADABLE.items():
            if begin.startswith(magic):
                raise ConnectorError(
                    f"The file of --progress, {file}, is compressed with {name}, which cannot be read here. No page "
                    "was written.",
                    condition="REPORT_PROGRESS_INVALID",
                    hint="Set spark.eventLog.compression.codec to zstd, or pass a file with one progress of the query "
                    "a line.",
                    parameters={"file": file, "codec": name},
                )
        codec = next((name for magic, name in _CODECS.items() if begin.startswith(magic)), None)
        if codec is None:
            yield from _split(raw, 64 * _CHUNK)
            return
        import pyarrow as pa  # noqa: PLC0415 - only where it is asked for

        yield from _split(pa.input_stream(raw, compression=codec), _CHUNK)


def _split(stream: Any, size: int) -> Iterator[str]:
    parts: list[bytes] = []
    length, is_cut, has_read = 0, False, False
    while True:
        try:
            chunk = stream.read(size)
        except OSError:
            # Spark is writing its end. A file that is damaged from its first byte on has another form.
            if not has_read:
                raise
            chunk = b""
        if not chunk:
            break
        has_read = True
        first, *others = chunk.split(b"\n")
        parts.append(first)
        length += len(first)
        for other in others:
            if not is_cut:
                yield _text(parts)
            parts, length, is_cut = [other], len(other), False
        if length > _MAX_LINE:
            if not is_cut:
                yield _text(parts)
            parts, length, is_cut = [], 0, True
    if length and not is_cut:
        yield _text(parts)


def _text(parts: list[bytes]) -> str:
    return b"".join(parts).decode("utf-8", "replace")
