"""What is asked for of a topic, and the options of the read for it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from pyspark_kafka.errors import OptionError
from pyspark_kafka.offsets import AtTimestamp, Earliest, Latest
from pyspark_kafka.operations.settings import resolve_settings, with_prefixes
from pyspark_kafka.operations.tail.match import RecordMatch
from pyspark_kafka.options import Moment, StreamReadOptions, moment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka.options import BatchReadOptions

# Offsets have at most 19 digits; a number of that length is a time in ms, or in ns, or a mistake.
_INT64_DIGITS = 18
# Options of a query that say what it reads, and how much at a time; here arguments do so.
_ASKED_HERE = (
    "subscribe",
    "subscribepattern",
    "assign",
    "startingtimestamp",
    "startingoffsets",
    "startingoffsetsbytimestamp",
    "endingtimestamp",
    "endingoffsets",
    "endingoffsetsbytimestamp",
    "topic",
    "deliveryguarantee",
    "checkpointlocation",
    "sourceindex",
    "mode",
    "maxcorruptratio",
)
_FORMATS = ("keyformat", "valueformat")

# Where to begin: at a bound of the log, at a time, at an offset.
TailStart: TypeAlias = Union[Earliest, Latest, AtTimestamp, int]  # noqa: UP007 - evaluated when imported


@dataclass(frozen=True, slots=True)
class TailRequest:
    """What is asked for.

    Attributes:
        topic: the topic.
        start: where to begin; None: at the last `count` records.
        count: with a start, how many records are shown at most (None: all); else how many of the last ones are.
        partitions: of these only; empty: of all.
        follow: whether records that are written later are shown as well, without an end.
        match: which records are shown.
        max_bytes: how much of a key, of a value and of a header is shown.
    """

    topic: str
    start: TailStart | None = None
    count: int | None = 10
    partitions: frozenset[int] = frozenset()
    follow: bool = False
    match: RecordMatch = RecordMatch()  # noqa: RUF009 - frozen
    max_bytes: int = 4096


def parse_start(text: str, now_ms: int) -> TailStart:
    """Read where to begin: `earliest`, `latest`, an offset, a time (ISO 8601) or an age such as `10 minutes ago`.

    Raises:
        ValueError: it is none of these; as the end of a sentence.

    Example:
        >>> parse_start("2026-01-01", 0)
        AtTimestamp(timestamp_ms=1767225600000)
    """
    word = text.strip()
    if word.lower() == "earliest":
        return Earliest()
    if word.lower() == "latest":
        return Latest()
    if word.isascii() and word.isdigit():
        if len(word) > _INT64_DIGITS:
            raise ValueError("must be an offset, which has at most 18 digits")
        return int(word)
    try:
        found: Moment = moment(word)
        return AtTimestamp(found.at(now_ms))
    except ValueError:
        raise ValueError(
            "must be earliest, latest, an offset, a time in ISO 8601 (UTC if it names no zone) or an age such as "
            "'10 minutes ago'"
        ) from None


def resolve_read(raw: Mapping[str, Any], topic: str) -> BatchReadOptions | StreamReadOptions:
    """Resolve the options of a read of one topic, out of those of whichever query.

    What they say of topics, of where to begin, of a checkpoint and of bad values is left out. Bad values never end the
    read: they are in the column of corrupt records.

    Raises:
        OptionError: with all problems at once.
    """
    kept = {name: value for name, value in with_prefixes(raw).items() if name.strip().lower() not in _ASKED_HERE}
    if any(name.strip().lower() in _FORMATS for name in kept):
        kept["mode"] = "PERMISSIVE"
    read = resolve_settings({**kept, "subscribe": topic}).read
    if read is None:
        raise RuntimeError("a topic is subscribed to")
    return replace(read, include_headers=True)


def check_partitions(asked: frozenset[int], partitions: int, topic: str) -> None:
    """Check that a topic has the partitions that are asked for.

    Raises:
        OptionError: it has not.
    """
    missing = sorted(number for number in asked if not 0 <= number < partitions)
    if missing:
        raise OptionError(
            f"Topic '{topic}' has no partition {missing[0]}; it has {partitions}, 0 to {partitions - 1}.",
            condition="ARGUMENT_INVALID",
            hint="Correct --partition.",
            parameters={"topic": topic, "partition": missing[0]},
        )
