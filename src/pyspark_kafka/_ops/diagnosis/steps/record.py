"""The first record: fetched and decoded as a task does, described without its contents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_kafka._base.model import OffsetRange
from pyspark_kafka._base.offsets import timestamp_text
from pyspark_kafka._client.client.fetch.fetcher import Fetcher
from pyspark_kafka._client.options import FetchOptions
from pyspark_kafka._ops.diagnosis.findings import Finding, FindingStatus
from pyspark_kafka._ops.diagnosis.steps.topics import read_topics
from pyspark_kafka._ops.operations.text import counted
from pyspark_kafka.records import iter_decode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._ops.diagnosis.context import Context

_COLUMNS = ("key", "value", "timestamp", "headers", "offset")
_FEW_BYTES = 1 << 20
_SHOWN = 200


def judge_record(context: Context) -> Iterator[Finding]:
    """Read the first record of the first topic with records."""
    topics = read_topics(context)
    if not topics:
        return
    for name in topics:
        for place, (first, end) in sorted(context.ends.items()):
            if place.topic == name and first < end:
                yield _read(context, place, first, end)
                return
    named = topics[0] if len(topics) == 1 else f"{len(topics)} topics"
    yield Finding("record", FindingStatus.OK, f"There is no record in {named} yet.", facts={"records": 0})


def _read(context: Context, place: TopicPartition, first: int, end: int) -> Finding:
    given = context.settings.read.fetch if context.settings.read is not None else FetchOptions()
    step = context.step()
    fetch = FetchOptions(
        max_bytes_per_fetch=_FEW_BYTES,
        max_partition_fetch_bytes=_FEW_BYTES,
        isolation_level=given.isolation_level,
        check_crcs=True,
        max_decompressed_bytes=given.max_decompressed_bytes,
        max_buffered_bytes=max(given.max_buffered_bytes, 2 * _FEW_BYTES),
        poll_timeout_ms=max(1, int(step.remaining_s() * 1000)),
    )
    with Fetcher(context.client, [OffsetRange(place, first, end)], fetch) as fetcher:
        for _, fetched in fetcher:
            position = fetched.start_offset
            for decoded in iter_decode(
                fetched.records,
                start_offset=position,
                end_offset=end,
                isolation_level=fetch.isolation_level.value,
                aborted_transactions=fetched.aborted_transactions,
                columns=list(_COLUMNS),
            ):
                position = decoded.next_offset
                if decoded.batch.num_rows:
                    return _describe(place, decoded.batch.slice(0, 1).to_pylist()[0], show=context.show_record)
            fetcher.confirm(place, position)
            if step.expired:
                break
    text = f"No record of {place} is visible: its first offsets are markers, or of aborted or open transactions."
    return Finding("record", FindingStatus.OK, text, facts={"topic": place.topic, "partition": place.partition})


def _describe(place: TopicPartition, row: dict[str, Any], *, show: bool) -> Finding:
    key, value, headers = row["key"], row["value"], row["headers"] or []
    timestamp = row["timestamp"]
    at_ms = int(timestamp.timestamp() * 1000) if hasattr(timestamp, "timestamp") else int(timestamp)
    facts: dict[str, Any] = {
        "topic": place.topic,
        "partition": place.partition,
        "offset": row["offset"],
        "timestamp_ms": at_ms,
        "key_bytes": None if key is None else len(key),
        "value_bytes": None if value is None else len(value),
        "headers": len(headers),
    }
    text = (
        f"The first record, {place} at offset {row['offset']}, is decoded: {_size('key', key)}, "
        f"{_size('value', value)}, {timestamp_text(at_ms)}, {counted(len(headers), 'header')}."
    )
    if show:
        facts["key"], facts["value"] = _text(key), _text(value)
        text += f" Key: {facts['key']}. Value: {facts['value']}."
    return Finding("record", FindingStatus.OK, text, facts=facts)


def _size(noun: str, content: bytes | None) -> str:
    if content is None:
        return f"no {noun}"
    return f"{noun} of {counted(len(content), 'byte')}"


def _text(content: bytes | None) -> str | None:
    if content is None:
        return None
    return repr(content[:_SHOWN].decode(errors="backslashreplace")) + (" …" if len(content) > _SHOWN else "")
