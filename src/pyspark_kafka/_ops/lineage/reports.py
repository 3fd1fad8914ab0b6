"""What reports of Spark say about lineage: topics and rows of a progress event, the reason of a failure. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka._ops.metrics.values import is_python_stream, offset_text
from pyspark_kafka.errors import CheckpointError

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress

_LOGIN = re.compile(r"//[^/@\s]+@")

# What comes after the message of an error: Java's stack, and the plan of a query, whose options may be secrets.
_AFTER_MESSAGE = ("\n\tat ", "\n=== Streaming Query ===", "\nJVM stacktrace:")


def kafka_reads(progress: StreamingQueryProgress) -> list[tuple[set[str], int]]:
    """Return the topics and the read rows of each Kafka source of a report, in the order of the query."""
    found = []
    for source in progress.sources:
        if not is_python_stream(source.description):
            continue
        try:
            end = KafkaSourceOffset.from_json(offset_text(source.endOffset))
        except CheckpointError:
            # Of another Python source, or no offset is known yet.
            continue
        if end.partitions:
            found.append(({each.topic for each in end.partitions}, max(0, source.numInputRows)))
    return found


def written_rows(progress: StreamingQueryProgress) -> int | None:
    """Return the rows that the sink got; None if Spark does not count them."""
    rows: int = progress.sink.numOutputRows
    return rows if rows >= 0 else None


def failure_message(text: str) -> str:
    """Return the message of an error that Spark reports, without stack, plan, and logins in addresses."""
    for mark in _AFTER_MESSAGE:
        text = text.partition(mark)[0]
    return without_login(text).strip()


def without_login(text: str) -> str:
    """Return a text without user and password in the addresses that it has."""
    return _LOGIN.sub("//", text)
