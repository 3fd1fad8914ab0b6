"""The cases of tools/make_fixtures.py: which records are sent, by which producers, in which order."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BATCHES = Path(__file__).parents[1] / "tests" / "golden" / "batches"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
T0 = 1_700_000_000_000

# What is done, by which producer, and for "send" the records; else "begin", "commit" or "abort".
Step = tuple[Any, ...]


@dataclass(frozen=True)
class Record:
    """One record to send."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int = T0
    headers: tuple[tuple[bytes, bytes | None], ...] = ()


@dataclass(frozen=True)
class Producer:
    """How one of the producers of a case is set up."""

    codec: str = "none"
    transactional: bool = False


@dataclass(frozen=True)
class Case:
    """One topic with one partition, and what is written to it."""

    name: str
    about: str
    producers: dict[str, Producer]
    script: list[Step]
    topic_config: dict[str, str] = field(default_factory=dict)

    @property
    def compacted(self) -> bool:
        """Whether the log is cleaned before it is fetched."""
        return self.topic_config.get("cleanup.policy") == "compact"

    def steps(self, writer: str) -> list[Step]:
        """Return the script without what the writer cannot send."""
        return [
            (verb, name, *[[r for record in records if (r := possible(record, writer))] for records in rest])
            for verb, name, *rest in self.script
        ]

    @staticmethod
    def markers(steps: list[Step]) -> int:
        """Count the transactions that had records: each takes one offset for its marker."""
        count, filled = 0, dict[str, bool]()
        for verb, name, *rest in steps:
            if verb == "begin":
                filled[name] = False
            elif verb == "send" and rest[0] and name in filled:
                filled[name] = True
            elif verb in {"commit", "abort"}:
                count += filled.pop(name)
        return count


def possible(record: Record, writer: str) -> Record | None:
    """Return the record as far as the client takes it; None when it does not take it at all."""
    headers, time = record.headers, record.timestamp_ms
    if writer == "java" and time < 0:
        time = 2  # "Timestamp should always be non-negative or null"
    if writer == "librdkafka" and time == 0:
        time = 1  # 0 means now
    if writer == "kafka-python":
        if record.key is None and record.value is None:
            return None
        headers = tuple((key, b"(null)" if value is None else value) for key, value in headers)
    else:
        # Their header keys are text.
        headers = tuple((key.decode(errors="ignore").encode(), value) for key, value in headers)
    return Record(record.key, record.value, time, headers)


SHAPES = [
    Record(b"key", b"value"),
    Record(None, b"no key"),
    Record(b"", b""),
    Record(b"tombstone", None),
    Record(None, None),
    Record(b"\x00\xff\xfe", bytes(range(256))),
    Record(b"long", b"all work and no play " * 40),
    Record(
        b"headers",
        b"duplicate keys, null and empty values",
        headers=((b"a", b"1"), (b"a", None), (b"a", b"1"), (b"", b""), ("\u00e9".encode(), b"\xff")),
    ),
    Record(b"header key", b"not UTF-8 where the client lets one", headers=((b"\xff\xfekey", b"x"),)),
]
TIMES = [
    Record(b"%d" % time, b"at %d" % time, time)
    for time in (T0, T0 - 5, 0, -1, -86_400_000, 4_102_444_800_000, 1, T0 + 86_400_000)
]
# Without this a broker refuses times of more than an hour ahead.
ANY_TIME = {"message.timestamp.after.max.ms": str(2**63 - 1)}


def rows(prefix: str, count: int, time: int = T0) -> list[Record]:
    """Make a few plain records."""
    return [Record(b"%s-%d" % (prefix.encode(), i), prefix.encode() * 10, time + i) for i in range(count)]


CASES = [
    *(
        Case(
            f"codec-{codec}",
            f"codec {codec}: nulls, empty values, headers, times before 1970 and far ahead",
            {"p": Producer(codec)},
            [("send", "p", SHAPES), ("send", "p", TIMES), ("send", "p", rows("more", 20))],
            ANY_TIME,
        )
        for codec in CODECS
    ),
    Case(
        "log-append",
        "the broker's time: every record of a batch has that of the batch",
        {"p": Producer("lz4")},
        [("send", "p", rows("first", 3)), ("send", "p", rows("second", 2))],
        {"message.timestamp.type": "LogAppendTime"},
    ),
    Case(
        "transactions",
        "one producer: committed, aborted, empty ones of both kinds, an aborted one of two batches, committed",
        {"t": Producer("gzip", transactional=True)},
        [
            ("begin", "t"),
            ("send", "t", rows("committed", 3)),
            ("commit", "t"),
            ("begin", "t"),
            ("send", "t", rows("aborted", 2)),
            ("abort", "t"),
            ("begin", "t"),
            ("commit", "t"),
            ("begin", "t"),
            ("abort", "t"),
            ("begin", "t"),
            ("send", "t", rows("aborted-a", 2)),
            ("send", "t", rows("aborted-b", 2)),
            ("abort", "t"),
            ("begin", "t"),
            ("send", "t", rows("last", 2)),
            ("commit", "t"),
        ],
    ),
    Case(
        "interleaved",
        "two transactional producers and one without transactions in turn; the aborted one that began last ends first",
        {
            "a": Producer("lz4", transactional=True),
            "b": Producer("zstd", transactional=True),
            "p": Producer("snappy"),
        },
        [
            ("begin", "a"),
            ("send", "a", rows("a-1", 2)),
            ("begin", "b"),
            ("send", "b", rows("b-1", 3)),
            ("send", "p", rows("p-1", 1)),
            ("send", "a", rows("a-2", 1)),
            ("abort", "b"),
            ("begin", "b"),
            ("send", "p", rows("p-2", 2)),
            ("send", "b", rows("b-2", 2)),
            ("abort", "a"),
            ("send", "p", rows("p-3", 1)),
            ("commit", "b"),
            ("begin", "a"),
            ("send", "a", rows("a-3", 2)),
            ("commit", "a"),
        ],
    ),
    Case(
        "compacted",
        "after the cleaner ran: holes, emptied batches, tombstones, an aborted transaction whose records are gone",
        {"p": Producer("gzip"), "t": Producer("none", transactional=True)},
        [
            ("send", "p", rows("k", 6)),
            ("send", "p", rows("k", 2, T0 + 1_000)),
            ("begin", "t"),
            ("send", "t", rows("k", 3, T0 + 2_000)),
            ("commit", "t"),
            ("begin", "t"),
            ("send", "t", rows("k", 5, T0 + 3_000)),
            ("abort", "t"),
            ("send", "p", [Record(b"k-4", None, T0 + 4_000), Record(b"other", b"kept", T0 + 4_001)]),
            ("send", "p", [Record(b"other", b"replaced", T0 + 5_000)]),
            # Makes the segment before it one that the cleaner may touch.
            ("send", "p", [Record(b"last", b"in the active segment", T0 + 10**11)]),
        ],
        {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.0"} | ANY_TIME,
    ),
]
