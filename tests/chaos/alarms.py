"""Reports of data loss in the log of a driver. Pure."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# What errors and what warnings of data loss contain.
_WORDS = ("KAFKA_DATA_LOSS", "because 'failOnDataLoss' is false")
_TIME = re.compile(r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d ")
_TIME_FORMAT = "%y/%m/%d %H:%M:%S "
# A query may have waited for a broker in between.
_EXCUSED_FOR_S = 180.0


@dataclass(frozen=True)
class Alarm:
    """A report of data loss.

    Attributes:
        moment: when it was logged, in seconds of the epoch; that of the line before where a line has none.
        line: the line of the log.
    """

    moment: float
    line: str


def alarms(log: str) -> list[Alarm]:
    """Return the reports of data loss in a log of Spark, whose lines begin with local time."""
    found: list[Alarm] = []
    moment = 0.0
    for line in log.splitlines():
        if stamp := _TIME.match(line):
            moment = time.mktime(time.strptime(stamp.group(), _TIME_FORMAT))
        if any(word in line for word in _WORDS):
            found.append(Alarm(moment, line))
    return found


def false_alarms(found: Sequence[Alarm], deletions: Mapping[str, Sequence[float]]) -> list[str]:
    """Return those that name no topic from which something unread was deleted shortly before.

    Args:
        found: the reports.
        deletions: of each topic when deletions began, in seconds of the epoch.
    """
    return [each.line for each in found if not _excused(each, deletions)]


def _excused(alarm: Alarm, deletions: Mapping[str, Sequence[float]]) -> bool:
    return any(
        int(moment) <= alarm.moment <= moment + _EXCUSED_FOR_S
        for topic, moments in deletions.items()
        if re.search(rf"\b{re.escape(topic)}\b", alarm.line)
        for moment in moments
    )
