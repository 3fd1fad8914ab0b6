"""A request for records of a topic, and the options of its read. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from pyspark_kafka._base.offsets import AtTimestamp, Earliest, Latest
from pyspark_kafka._client.options import Moment, StreamReadOptions, moment
from pyspark_kafka._ops.operations.settings import resolve_settings, with_prefixes
from pyspark_kafka._ops.operations.tail.match import RecordMatch
from pyspark_kafka.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka._client.options import BatchReadOptions

# Offsets have at most 19 digits; a number of that length is a time in ms, or in ns, or a mistake.
_INT64_DIGITS = 18
# Options of a query about its topics, edges and limits; here arguments replace them.
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
    """A request for records of a topic.

    Attributes:
        topic: the topic.
        start: the edge to begin at; None: at the last `count` records.
        count: with a start, the maximum number of shown records (None: all); otherwise the number of last records.
        partitions: only these; empty: all.
        follow: whether records that are written later are shown as well, without an end.
        match: the filter of shown records.
        max_bytes: the maximum number of shown bytes of a key, of a value and of a header.
    """

    topic: str
    start: TailStart | None = None
    count: int | None = 10
    partitions: frozenset[int] = frozenset()
    follow: bool = False
    match: RecordMatch = RecordMatch()  # noqa: RUF009 - frozen
    max_bytes: int = 4096


def parse_start(text: str, now_ms: int) -> TailStart:
    """Parse an edge: `earliest`, `latest`, an offset, a time (ISO 8601) or an age such as `10 minutes ago`.

    Raises:
        ValueError: the text is not such an edge; its message is the end of a sentence.

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
    """Resolve the options for a read of one topic from any query's options.

    Options about topics, edges, checkpoints and bad records are left out. Bad records never end the
    read: they are in the corrupt column.

    Raises:
        OptionError: with all problems together.
    """
    kept = {name: value for name, value in with_prefixes(raw).items() if name.strip().lower() not in _ASKED_HERE}
    if any(name.strip().lower() in _FORMATS for name in kept):
        kept["mode"] = "PERMISSIVE"
    read = resolve_settings({**kept, "subscribe": topic}).read
    if read is None:
        raise RuntimeError("a topic is subscribed to")
    return replace(read, include_headers=True)


def check_partitions(asked: frozenset[int], partitions: int, topic: str) -> None:
    """Check that a topic has the requested partitions.

    Raises:
        OptionError: it lacks one of them.
    """
    missing = sorted(number for number in asked if not 0 <= number < partitions)
    if missing:
        raise OptionError(
            f"Topic '{topic}' has no partition {missing[0]}; it has {partitions}, 0 to {partitions - 1}.",
            condition="ARGUMENT_INVALID",
            hint="Correct --partition.",
            parameters={"topic": topic, "partition": missing[0]},
        )
