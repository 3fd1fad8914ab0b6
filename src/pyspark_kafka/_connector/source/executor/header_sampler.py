"""Looks at the headers of a few fetched records, for any columns of the query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_kafka._base.model import NO_END
from pyspark_kafka._base.traces.link_sample import RECORDS_AT_A_TIME, LinkSample
from pyspark_kafka._base.traces.trace_parent import NAME
from pyspark_kafka.errors import ConnectorError
from pyspark_kafka.records import iter_decode

if TYPE_CHECKING:
    import pyarrow as pa

    from pyspark_kafka._base.model import OffsetRange
    from pyspark_kafka._client.client.fetch.cursor import FetchedRecords
    from pyspark_kafka._client.options import FetchOptions

_COLUMNS = ("headers",)
# Of headers; a piece ends after the first record that exceeds it.
_MAX_BYTES = 64 << 10


class HeaderSampler:
    """Adds what the first records of some responses say to a sample.

    Compressed batches are decompressed once more for it, at most as often as the sample is due.

    Runs on: executor, on the thread of the reader; does not block.

    Attributes:
        sample: what was found since it was set.

    Args:
        fetch: the options of the read.
    """

    def __init__(self, fetch: FetchOptions) -> None:
        self.sample = LinkSample()
        self._fetch = fetch

    def look(self, fetched: FetchedRecords, offset_range: OffsetRange) -> None:
        """Look at the first records of a response, if the sample is due."""
        sample = self.sample
        if not sample.is_due():
            return
        pieces = iter_decode(
            fetched.records,
            start_offset=fetched.start_offset,
            end_offset=None if offset_range.end_offset >= NO_END else offset_range.end_offset,
            isolation_level=self._fetch.isolation_level,
            aborted_transactions=fetched.aborted_transactions,
            columns=_COLUMNS,
            max_decompressed_bytes=self._fetch.max_decompressed_bytes,
            # The reader verifies what it returns.
            check_crcs=False,
            target_bytes=_MAX_BYTES,
            target_rows=RECORDS_AT_A_TIME,
        )
        try:
            piece = next(pieces, None)
        except ConnectorError:
            # The reader meets it as well, and raises it with its place.
            return
        if piece is not None and piece.batch.num_rows:
            sample.add_headers(piece.batch.num_rows, trace_parents_in(piece.batch.column(0)))


def trace_parents_in(headers: pa.Array[Any]) -> list[bytes | str | None]:
    """Return the value of each header `traceparent` in a column of headers, list<struct<key, value>>. Pure."""
    flat = headers.flatten()
    values = flat.field(1)
    return [values[place].as_py() for place, key in enumerate(flat.field(0).to_pylist()) if key == NAME]
