"""The fields of a record batch's header that a producer reads and writes."""

from __future__ import annotations

import pytest

from kit.fakes.memory_cluster import ORDERS_0, batch_of
from pyspark_kafka.client.produce.stamps import parse_batch_start
from pyspark_kafka.errors import ProtocolError


def test_batch_start_tells_producer_and_counts() -> None:
    start = parse_batch_start(ORDERS_0, batch_of(b"a", b"b", b"c"))
    assert (start.record_count, start.last_offset_delta) == (3, 2)
    assert (start.producer_id, start.producer_epoch, start.base_sequence) == (-1, -1, -1)


def _old_format() -> bytearray:
    data = batch_of(b"a")
    data[16] = 1
    return data


@pytest.mark.parametrize(
    "data",
    [b"", b"x" * 60, bytes(batch_of(b"a"))[:-1], bytes(batch_of(b"a")) * 2, _old_format()],
    ids=["empty", "shorter than a header", "cut off", "two batches", "format 1"],
)
def test_bytes_that_are_not_one_batch_are_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError, match=r"^\[RECORD_BATCH_INVALID\] orders-0: .*not one whole record batch"):
        parse_batch_start(ORDERS_0, data)
