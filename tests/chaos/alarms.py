"""Reports of data loss in the log of a driver. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_WORDS = ("KAFKA_DATA_LOSS", "cannot be read:", "deleted and made again", "was recreated", "may have been aged out")


def reports(log: str) -> list[str]:
    """Return the lines that report data loss."""
    return [line for line in log.splitlines() if any(word in line for word in _WORDS)]


def false_reports(lines: Iterable[str], deletions: Mapping[str, Sequence[float]]) -> list[str]:
    """Return those that name no topic from which anything unread was deleted."""
    excused = [topic for topic, moments in deletions.items() if moments]
    return [line for line in lines if not any(re.search(rf"\b{re.escape(topic)}\b", line) for topic in excused)]
