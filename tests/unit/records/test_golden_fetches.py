"""Partitions that Java's producer, librdkafka and kafka-python wrote, as brokers handed them out.

Made by tools/make_fixtures.py; the JSON beside each file says which program of which version wrote it, which broker it
was fetched from, and what was sent. Expected is what was sent and acknowledged, never what a decoder gave.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kit.record_batches import CONTROL, DELETE_HORIZON, TRANSACTIONAL
from pyspark_kafka.records import COLUMN_NAMES, iter_decode, scan

FOLDER = Path(__file__).parents[2] / "golden" / "batches"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
WRITERS = ("java", "librdkafka", "kafka-python")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
CASES = (*(f"codec-{codec}" for codec in CODECS), "log-append", "transactions", "interleaved", "compacted")
Row = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """One answer of the broker."""

    start_offset: int
    records: bytes
    aborted: list[tuple[int, int]]


@dataclass(frozen=True)
class Fixture:
    """One partition: the answers to fetches of all of it, and what is in it."""

    described: dict[str, Any]
    answers: list[Answer]

    @classmethod
    def load(cls, name: str) -> Fixture:
        described = json.loads((FOLDER / f"{name}.json").read_text())
        data, at, answers = (FOLDER / f"{name}.bin").read_bytes(), 0, []
        for answer in described["answers"]:
            aborted = [(pid, first) for pid, first in answer["aborted_transactions"]]
            answers.append(Answer(answer["start_offset"], data[at : at + answer["bytes"]], aborted))
            at += answer["bytes"]
        assert at == len(data)
        return cls(described, answers)

    @property
    def end(self) -> int:
        return int(self.described["high_watermark"])

    def expected(self, isolation_level: str, start: int, end: int) -> list[Row]:
        visible = {offset for offset in self.described[isolation_level] if start <= offset < end}
        return [as_row(record) for record in self.described["records"] if record["offset"] in visible]

    def read(self, isolation_level: str, start: int, end: int, **arguments: Any) -> list[Row]:
        """Decode a range answer by answer, as a reader does."""
        position, rows = start, list[Row]()
        for answer in self.answers:
            if scan(answer.records, answer.start_offset).next_offset <= position or position >= end:
                continue
            for piece in iter_decode(
                answer.records,
                start_offset=position,
                end_offset=end,
                isolation_level=isolation_level,
                aborted_transactions=answer.aborted,
                **arguments,
            ):
                rows += to_rows(piece.batch)
                assert position < piece.next_offset
                position = piece.next_offset
        assert position == end, "the position must reach the end"
        return rows

    def attributes(self) -> list[int]:
        found = []
        for answer in self.answers:
            at = 0
            while at < len(answer.records):
                found.append(int.from_bytes(answer.records[at + 21 : at + 23], "big"))
                at += 12 + int.from_bytes(answer.records[at + 8 : at + 12], "big")
        return found


def raw(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def as_row(record: dict[str, Any]) -> Row:
    # As Java's String does it: what is not UTF-8 becomes U+FFFD.
    headers = [
        {"key": (raw(key) or b"").decode("utf-8", "replace"), "value": raw(value)} for key, value in record["headers"]
    ]
    return {
        "key": raw(record["key"]),
        "value": raw(record["value"]),
        "offset": record["offset"],
        "timestamp": record["timestamp_ms"] * 1000,
        "timestampType": record["timestamp_type"],
        "headers": headers or None,
    }


def to_rows(batch: pa.RecordBatch) -> list[Row]:
    batch.validate(full=True)
    assert tuple(batch.schema.names) == COLUMN_NAMES
    # As a number: Python's datetime ends before some of these times.
    microseconds = batch.column("timestamp").cast(pa.int64())
    at = batch.schema.get_field_index("timestamp")
    found: list[Row] = batch.set_column(at, "timestamp", microseconds).to_pylist()
    return found


@pytest.fixture(params=NAMES)
def fixture(request: pytest.FixtureRequest) -> Fixture:
    return Fixture.load(request.param)


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("case", CASES)
def test_every_case_was_written_by_every_client(writer: str, case: str) -> None:
    pattern = re.compile(rf"{writer}-\d[\d.]*-{case}")
    assert any(pattern.fullmatch(name) for name in NAMES)


@pytest.mark.parametrize("isolation_level", ["read_uncommitted", "read_committed"])
def test_golden_fetch_gives_the_records_that_were_sent(fixture: Fixture, isolation_level: str) -> None:
    assert fixture.read(isolation_level, 0, fixture.end) == fixture.expected(isolation_level, 0, fixture.end)


@pytest.mark.parametrize("isolation_level", ["read_uncommitted", "read_committed"])
def test_every_range_is_the_part_of_the_whole(fixture: Fixture, isolation_level: str) -> None:
    for start in range(fixture.end):
        for end in {start + 1, start + 4, fixture.end - 1, fixture.end}:
            if start < end <= fixture.end:
                assert fixture.read(isolation_level, start, end) == fixture.expected(isolation_level, start, end)


def test_small_pieces_make_the_whole(fixture: Fixture) -> None:
    expected = fixture.expected("read_committed", 0, fixture.end)
    assert fixture.read("read_committed", 0, fixture.end, target_rows=2) == expected
    assert fixture.read("read_committed", 0, fixture.end, target_bytes=40) == expected


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("number", range(5))
def test_codec_fixtures_are_compressed_with_their_codec(writer: str, number: int) -> None:
    (name,) = [name for name in NAMES if re.fullmatch(rf"{writer}-[\d.]+-codec-{CODECS[number]}", name)]
    assert {attributes & 7 for attributes in Fixture.load(name).attributes()} == {number}


@pytest.mark.parametrize("name", [name for name in NAMES if "compacted" in name])
def test_compacted_fixtures_show_what_only_a_cleaner_makes(name: str) -> None:
    fixture = Fixture.load(name)
    assert len(fixture.described["read_committed"]) < len(fixture.described["records"])
    attributes = fixture.attributes()
    assert any(found & CONTROL for found in attributes)
    assert any(found & DELETE_HORIZON for found in attributes)
    data = b"".join(answer.records for answer in fixture.answers)
    assert b"aborted" not in data


@pytest.mark.parametrize("name", [name for name in NAMES if "transactions" in name or "interleaved" in name])
def test_transactional_fixtures_have_markers_and_listed_aborts(name: str) -> None:
    fixture = Fixture.load(name)
    assert sum(bool(found & CONTROL) for found in fixture.attributes()) == 4
    assert sum(bool(found & TRANSACTIONAL) for found in fixture.attributes()) >= 8
    # Listed again in every answer that they reach into: a fetch answer comes from one segment.
    assert len({pair for answer in fixture.answers for pair in answer.aborted}) == 2


def test_fixtures_stay_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.parent.rglob("*")) < 800_000
