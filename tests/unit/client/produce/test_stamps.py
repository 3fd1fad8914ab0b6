"""The fields of a record batch's header that a producer reads and writes."""

from __future__ import annotations

import pytest

from kit.fakes.memory_cluster import ORDERS_0, batch_of
from pyspark_kafka.client.produce.batches.sequences import SequenceStamp
from pyspark_kafka.client.produce.stamps import stamp_batch
from pyspark_kafka.errors import ProtocolError


def test_stamp_is_written_into_a_batch_without_one_and_accepted_in_a_batch_with_it() -> None:
    due = SequenceStamp(7, 2, 100)
    stamped = stamp_batch(ORDERS_0, batch_of(b"a", b"b", b"c"), 3, due)
    assert stamp_batch(ORDERS_0, stamped, 3, due) is stamped
    with pytest.raises(ProtocolError, match="SEQUENCE_STAMP_MISMATCH"):
        stamp_batch(ORDERS_0, stamped, 3, SequenceStamp(7, 2, 103))
    with pytest.raises(ProtocolError, match=r"said to hold 2 records has 3 and a last offset delta of 2"):
        stamp_batch(ORDERS_0, stamped, 2, due)


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
        stamp_batch(ORDERS_0, data, 1, SequenceStamp(-1, -1, -1))
