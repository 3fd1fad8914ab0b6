"""The messages between driver and tasks, as JSON objects: plain values in, checked values out.

A task sends `hello`. For each lane it sends `started`, `moved`, `committed` and `ended`; for several lanes `reports`;
and `failed` if a lane fails. The driver sends `go` when every lane has started, `end` for each epoch that ends, and
`stop`. Both send `alive` after a while without another message. The driver also sends it in response to `hello`: lanes
start after it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from pyspark_kafka.continuous.epochs.coordinator import LaneReport

# Tracebacks of users' functions are cut to this many characters, at their beginning.
MAX_TEXT = 64_000


@dataclass(frozen=True, slots=True)
class Hello:
    """The first word of a task: which one it is, and the id of its process."""

    task: int
    pid: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Started:
    """A lane has its state and its reader, and waits for the others."""

    lane: int


@dataclass(frozen=True, slots=True)
class Moved:
    """A lane has moved on for the first time in an epoch."""

    lane: int
    epoch: int


@dataclass(frozen=True, slots=True)
class LaneCommitted:
    """A lane has committed what it has read in an epoch so far, with its position: it will not be read again."""

    lane: int
    epoch: int


@dataclass(frozen=True, slots=True)
class LaneEnded:
    """A lane has read its input partition to its end, and nothing more will come; it continues to end epochs."""

    lane: int


@dataclass(frozen=True, slots=True)
class Reports:
    """Lanes of a task have ended an epoch.

    Attributes:
        reports: one of each lane, one at least; the metrics of all may be with the first one.
    """

    reports: tuple[LaneReport, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """A lane has failed, and its task ends.

    Attributes:
        lane: the number of its input partition.
        summary: the error in one line.
        traceback: all of it.
        offset: the JSON of the lane's position; empty if it has none yet.
        rows: where the rows that it read last come from, as its reader says; empty if that is not known.
        error: the error as `ConnectorError.to_json` returns it; empty for an error of another package.
    """

    lane: int
    summary: str
    traceback: str
    offset: str = ""
    rows: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Alive:
    """Nothing else to say."""


@dataclass(frozen=True, slots=True)
class Go:
    """The driver: every lane has started, and all of them read from now on."""


@dataclass(frozen=True, slots=True)
class End:
    """The driver: every lane ends this epoch.

    Attributes:
        epoch: its number.
        last: 1 if lanes end with it.
        lanes_ms: how often lanes that commit by their own clocks do so from now on; 0 for as often as before.
    """

    epoch: int
    last: int = 0
    lanes_ms: int = 0


@dataclass(frozen=True, slots=True)
class Stop:
    """The driver: every lane ends, without another report."""


Message = Hello | Started | Moved | LaneCommitted | Reports | LaneEnded | Failed | Alive | Go | End | Stop

_KINDS: dict[str, type[Message]] = {
    "hello": Hello,
    "started": Started,
    "moved": Moved,
    "committed": LaneCommitted,
    "reports": Reports,
    "ended": LaneEnded,
    "failed": Failed,
    "alive": Alive,
    "go": Go,
    "end": End,
    "stop": Stop,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


class BadMessageError(Exception):
    """Bytes that are not a message; whoever sent them is not part of this run, or is broken."""


def encode(message: Message) -> bytes:
    """Return a message as JSON."""
    if isinstance(message, Reports):
        fields: dict[str, Any] = {"reports": [_values_of(report) for report in message.reports]}
    else:
        fields = {name: getattr(message, name) for name in message.__dataclass_fields__}
    return json.dumps({"is": _NAMES[type(message)], **fields}, separators=(",", ":")).encode()


def decode(data: bytes) -> Message:
    """Return the message of its JSON.

    Raises:
        BadMessageError: it is not JSON, of no known kind, or a field is missing, unknown or of another type.
    """
    try:
        parsed: Any = json.loads(str(data, "utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadMessageError(f"not JSON: {error}") from error
    if not isinstance(parsed, dict) or not isinstance(name := parsed.pop("is", None), str) or name not in _KINDS:
        raise BadMessageError("of no known kind")
    kind = _KINDS[name]
    fields = kind.__dataclass_fields__
    if parsed.keys() != fields.keys():
        raise BadMessageError(f"{name} has the fields {sorted(parsed)}, not {sorted(fields)}")
    if kind is Reports:
        return _reports(parsed["reports"])
    for each, value in parsed.items():
        # Annotations are text here; every field is a number or text.
        is_number = fields[each].type == "int"
        if not (_is_count(value) if is_number else type(value) is str):
            raise BadMessageError(f"{name}.{each} is not {'a number' if is_number else 'text'}")
    return kind(**parsed)


# Annotations are text here; every field is a number or text.
_REPORT_TYPES = [int if each.type == "int" else str for each in LaneReport.__dataclass_fields__.values()]
_values_of = attrgetter(*LaneReport.__dataclass_fields__)


def _reports(parsed: object) -> Reports:
    """Return reports of their values. There is one for each lane and epoch, so it takes few steps."""
    if type(parsed) is not list or not parsed:
        raise BadMessageError("reports.reports is not a list of some")
    reports = []
    for values in parsed:
        if type(values) is not list or list(map(type, values)) != _REPORT_TYPES:
            raise BadMessageError("reports.reports has an entry that is not a report")
        report = LaneReport(*values)
        if not all(0 <= value < 2**63 for value in values if type(value) is int):
            raise BadMessageError("reports.reports has a number that is not a count")
        reports.append(report)
    return Reports(tuple(reports))


def _is_count(value: object) -> bool:
    # `True` is an int to isinstance.
    return type(value) is int and 0 <= value < 2**63
