"""Records in their shown form: each part is cut to a size. Pure."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark_kafka._base.model import TopicPartition

# A record's number of headers is limited by its size only.
_MAX_HEADERS = 100
_APPEND_TIME = 1

Encoding = Literal["utf-8", "base64", "json"]


class ShownPart(NamedTuple):
    """A key, a value, or the value of a header.

    Attributes:
        content: the bytes, or the JSON of a typed part, cut to the shown size.
        size: the size of the whole in bytes; for JSON, as UTF-8.
        is_json: whether the content is JSON.
    """

    content: bytes
    size: int
    is_json: bool = False

    @property
    def is_cut(self) -> bool:
        """Whether the content is cut."""
        return len(self.content) < self.size

    def text(self) -> str | None:
        """Return the content as text; None if it is not UTF-8. A character that the cut has split is left out."""
        try:
            return self.content.decode()
        except UnicodeDecodeError as error:
            if self.is_cut and error.end == len(self.content) and error.reason == "unexpected end of data":
                return self.content[: error.start].decode()
            return None

    def value(self) -> Any:
        """Return the parsed JSON of a whole content; its text, if it is nested too deeply."""
        try:
            return json.loads(self.content)
        except (ValueError, RecursionError):
            return self.content.decode(errors="replace")

    def encoded(self) -> tuple[str, Encoding]:
        """Return the content as text for JSON, and its encoding: bytes that are not UTF-8 are in Base64."""
        text = self.text()
        if text is None:
            return base64.b64encode(self.content).decode(), "base64"
        return text, "json" if self.is_json else "utf-8"


class BadPart(NamedTuple):
    """The reason of an unreadable key or value.

    Attributes:
        column: `key` or `value`.
        reason: the kind of fault.
        message: the fault.
    """

    column: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ShownRecord:
    """A record.

    Attributes:
        topic_partition: its topic-partition.
        offset: its offset.
        timestamp_ms: its time, in ms since 1970-01-01 UTC; None if it has none that can be represented.
        is_append_time: whether the broker has set the time.
        key: None if it has none.
        value: None if it has none.
        headers: at most 100 of them.
        more_headers: the number of further headers.
        bad: the reason of an unreadable key or value; both are bytes then.
    """

    topic_partition: TopicPartition
    offset: int
    timestamp_ms: int | None
    is_append_time: bool = False
    key: ShownPart | None = None
    value: ShownPart | None = None
    headers: tuple[tuple[str, ShownPart | None], ...] = ()
    more_headers: int = 0
    bad: BadPart | None = None


def shown_records(
    batch: pa.RecordBatch,
    rows: Iterable[int] | None,
    topic_partition: TopicPartition,
    max_bytes: int,
    corrupt: str | None = None,
) -> Iterator[ShownRecord]:
    """Return rows of a batch in their shown form.

    Args:
        batch: with the columns of the source, headers included.
        rows: the rows; None: all.
        topic_partition: of the records.
        max_bytes: the maximum number of shown bytes of a part.
        corrupt: the corrupt column; None: without such a column.
    """
    times = batch.column("timestamp").cast(pa.int64())
    for row in range(batch.num_rows) if rows is None else map(int, rows):
        bad = None if corrupt is None else batch.column(corrupt)[row]
        if bad is None or not bad.is_valid:
            key, value, fault = batch.column("key")[row], batch.column("value")[row], None
        else:
            key, value = bad["rawKey"], bad["rawValue"]
            fault = BadPart(*(str(bad[name].as_py()) for name in BadPart._fields))
        # Scalars one by one: a list that a record has grown large is not turned into objects as a whole.
        headers = batch.column("headers")[row].values if batch.column("headers")[row].is_valid else ()
        yield ShownRecord(
            topic_partition,
            batch.column("offset")[row].as_py(),
            times[row].as_py() // 1000,
            batch.column("timestampType")[row].as_py() == _APPEND_TIME,
            _part(key, max_bytes),
            _part(value, max_bytes),
            tuple(
                (_cut_text(str(each["key"].as_py()), max_bytes), _part(each["value"], max_bytes))
                for each in headers[:_MAX_HEADERS]
            ),
            max(0, len(headers) - _MAX_HEADERS),
            fault,
        )


def json_text(value: Any) -> str:
    """Return an Arrow scalar as JSON; values without a form in JSON are text."""
    try:
        plain = _plain(value.as_py())
    except (OverflowError, ValueError) as error:
        # Python's times end with the year 9999.
        plain = f"(it cannot be shown: {error})"
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def _part(value: Any, max_bytes: int) -> ShownPart | None:
    if not value.is_valid:
        return None
    if pa.types.is_binary(value.type):
        # Not copied before it is cut: it may be as large as a record.
        buffer = value.as_buffer()
        return ShownPart(buffer.slice(0, min(max_bytes, buffer.size)).to_pybytes(), buffer.size)
    data = json_text(value).encode(errors="backslashreplace")
    return ShownPart(data[:max_bytes], len(data), is_json=True)


def _cut_text(text: str, max_bytes: int) -> str:
    return text if len(text) <= max_bytes else f"{text[:max_bytes]} …"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, (bytes, bytearray)):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (dt.datetime, dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, (dt.timedelta, decimal.Decimal)):
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)
