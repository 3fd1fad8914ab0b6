"""The fields of a record batch's header that a producer reads and writes."""

from __future__ import annotations

import pytest

from kit.fakes.memory_cluster import ORDERS_0, batch_of
from pyspark_kafka._client.client.produce.stamps import stamp_batch
from pyspark_kafka.errors import ProtocolError
from pyspark_kafka.records.batch_header import TRANSACTIONAL, HeaderWalk


def test_stamp_is_written_into_a_batch_without_one() -> None:
    stamped = stamp_batch(
        ORDERS_0, batch_of(b"a", b"b", b"c"), 3, producer_id=7, producer_epoch=2, base_sequence=100, transactional=True
    )
    (header,) = HeaderWalk(memoryview(stamped))
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 100)
    assert header.attributes & TRANSACTIONAL
    with pytest.raises(ProtocolError, match="SEQUENCE_STAMP_MISMATCH"):
        stamp_batch(ORDERS_0, stamped, 3, producer_id=7, producer_epoch=2, base_sequence=100)
    with pytest.raises(ProtocolError, match=r"said to hold 2 records has 3 and a last offset delta of 2"):
        stamp_batch(ORDERS_0, stamped, 2, producer_id=7, producer_epoch=2, base_sequence=100)


def test_batch_of_a_producer_without_identity_stays_as_it_is() -> None:
    data = batch_of(b"a")
    unchanged = bytes(data)
    assert stamp_batch(ORDERS_0, data, 1, producer_id=-1, producer_epoch=-1, base_sequence=-1) is data
    assert data == unchanged


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
        stamp_batch(ORDERS_0, data, 1, producer_id=-1, producer_epoch=-1, base_sequence=-1)
