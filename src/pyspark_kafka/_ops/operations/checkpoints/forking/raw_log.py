"""A file of Spark's offset log or commit log, line by line: unchanged parts stay as Spark wrote them. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

# Stands for the offset of a source without an offset yet.
_NO_OFFSET = "-"
_NAMED = "v2"


@dataclass(frozen=True, slots=True)
class LogText:
    """The lines of a file; `OffsetSeqLog` and `CommitLog` have checked them.

    Attributes:
        version: the first line, such as v1.
        metadata: the second line: JSON, or empty.
        lines: the lines after it: an offset for each source, or none.
    """

    version: str
    metadata: str
    lines: tuple[str, ...] = ()

    @staticmethod
    def parse(data: bytes) -> LogText:
        """Return the lines of a file."""
        # Not splitlines: it splits at characters that JSON may contain.
        version, metadata, *lines = data.decode().removesuffix("\n").split("\n")
        return LogText(version, metadata, tuple(lines))

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        return "\n".join((self.version, self.metadata, *self.lines)).encode()

    def with_metadata(self, **changes: Any) -> LogText:
        """Return the file with other values in its metadata; a file without metadata stays as it is."""
        if not self.metadata.strip():
            return self
        metadata = json.dumps({**json.loads(self.metadata), **changes}, separators=(",", ":"), ensure_ascii=False)
        return replace(self, metadata=metadata)

    def with_ends(self, ends: Mapping[str, str]) -> LogText:
        """Return the file of an offset log with other offsets, by the names of the sources."""
        named = self.version == _NAMED
        lines = []
        for number, line in enumerate(self.lines):
            name = line.partition(":")[0] if named else str(number)
            prefix = f"{name}:" if named else ""
            lines.append(f"{prefix}{ends[name]}" if name in ends else line)
        return replace(self, lines=tuple(lines))

    def value(self, name: str) -> Any:
        """Return a value of the metadata by its name; None if it is missing."""
        return json.loads(self.metadata).get(name) if self.metadata.strip() else None


# What Spark writes for a batch without a watermark.
FINISHED = LogText("v1", '{"nextBatchWatermarkMs":0}')
