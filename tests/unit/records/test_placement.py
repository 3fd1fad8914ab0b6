"""Base offsets that are not where the log has the batch: a checksum does not cover them."""

from __future__ import annotations

import itertools
import struct
from typing import Any

import pytest

from kit.fakes.handlers.fetch import FetchScript
from kit.fakes.logs import Batch, record_batch
from kit.fakes.simulated_cluster import Reading, SimulatedCluster
from kit.texts import said
from pyspark_kafka._base.model import NO_END
from pyspark_kafka.errors import ConnectorError, CorruptRecordsError
from pyspark_kafka.records import place, scan

# Offsets that have bits above and below the size of a batch, in a log that ends far behind what is read.
FIRST, EACH = 4096, 10
LOG_END = 1 << 20
# Bits inside of a batch, of the log, and of no log.
BITS = (*range(10), 13, 19, 20, 40, 62, 63)
# Holes before some batches, as a compaction leaves them.
HOLES = {2: 7, 3: 300, 5: 1}


def log_of(count: int, holes: dict[int, int]) -> list[Batch]:
    batches: list[Batch] = []
    base = FIRST
    for number in range(count):
        base += holes.get(number, 0)
        batches.append((base, base + EACH, record_batch(base, [b"%d" % (base + each) for each in range(EACH)])))
        base += EACH
    return batches


CONTIGUOUS, COMPACTED = log_of(8, {}), log_of(8, HOLES)


class Damaging:
    """A broker whose response number `response` has one bit of the base offset of a batch flipped.

    Attributes:
        tail: the bytes of the next batch that follow, cut off.
    """

    def __init__(
        self, batches: list[Batch], per_response: int, *, tail: int = 0, high_watermark: int = LOG_END
    ) -> None:
        self.batches, self.per_response, self.tail = batches, per_response, tail
        self.high_watermark = high_watermark
        self.response, self.batch, self.bit = -1, -1, 0
        self.always = False
        self.sent = 0

    def __call__(self, request: Any) -> Any:
        offset = request.topics[0].partitions[0].fetch_offset
        found = [data for _, end, data in self.batches if end > offset]
        data = bytearray(b"".join(found[: self.per_response]))
        if len(found) > self.per_response:
            data += found[self.per_response][: self.tail]
        if self.always or self.sent == self.response:
            at = 0
            for _ in range(self.batch):
                if at < len(data):
                    at += 12 + struct.unpack_from(">i", data, at + 8)[0]
            if at + 8 <= len(data):
                (base,) = struct.unpack_from(">Q", data, at)
                struct.pack_into(">Q", data, at, base ^ (1 << self.bit))
        self.sent += 1
        return FetchScript(bytes(data), high_watermark=self.high_watermark)(request)


def read(broker: Damaging, start: int, end: int) -> tuple[list[int] | str, SimulatedCluster]:
    cluster = SimulatedCluster()
    cluster.add_topic("t")
    cluster.script(broker)
    try:
        return Reading(cluster).values(start, end), cluster
    except ConnectorError as error:
        return error.condition or "", cluster


@pytest.mark.parametrize("tail", [0, 70])
@pytest.mark.parametrize("per_response", [1, 2, 4])
@pytest.mark.parametrize("end", [FIRST + 35, FIRST + 60])
def test_bit_of_a_base_offset_that_flips_loses_no_row_of_a_contiguous_log(
    end: int, per_response: int, tail: int
) -> None:
    expected = [*range(FIRST, end)]
    for response, batch, bit in itertools.product(range(3), range(per_response), BITS):
        broker = Damaging(CONTIGUOUS, per_response, tail=tail)
        broker.response, broker.batch, broker.bit = response, batch, bit
        found, _ = read(broker, FIRST, end)
        assert found == expected or isinstance(found, str), (response, batch, bit, found)


@pytest.mark.parametrize("tail", [0, 70])
@pytest.mark.parametrize("per_response", [1, 2, 4])
@pytest.mark.parametrize("end", [FIRST + 30, COMPACTED[4][0] + 5])
def test_bit_of_a_base_offset_that_flips_loses_no_row_of_a_compacted_log(
    end: int, per_response: int, tail: int
) -> None:
    """A batch that is moved inside of the hole before it looks as one that was there: its rows are not lost."""
    expected = [each for base, stop, _ in COMPACTED for each in range(base, stop) if each < end]
    for response, batch, bit in itertools.product(range(3), range(per_response), BITS):
        broker = Damaging(COMPACTED, per_response, tail=tail)
        broker.response, broker.batch, broker.bit = response, batch, bit
        found, _ = read(broker, FIRST, end)
        assert found == expected or isinstance(found, str), (response, batch, bit, found)


# One batch that says the same in each response, within the log, is where it says, for all that can be known.
@pytest.mark.parametrize(
    ("per_response", "bit"), [*itertools.product((2, 4), (0, 3, 5, 20, 40, 62)), *((1, bit) for bit in (20, 40, 62))]
)
@pytest.mark.parametrize("batch", [0, 1])
def test_bit_that_flips_in_every_response_loses_no_row_silently(batch: int, per_response: int, bit: int) -> None:
    end = CONTIGUOUS[-1][1]
    broker = Damaging(CONTIGUOUS, per_response, high_watermark=end)
    broker.always, broker.batch, broker.bit = True, batch, bit
    found, _ = read(broker, FIRST, end)
    assert found == [*range(FIRST, end)] or isinstance(found, str)


@pytest.mark.parametrize("tail", [0, 70])
@pytest.mark.parametrize("log", [CONTIGUOUS, COMPACTED])
def test_honest_log_is_read_with_a_request_more_at_most_for_each_hole(log: list[Batch], tail: int) -> None:
    end = log[-1][1]
    broker = Damaging(log, 2, tail=tail)
    found, cluster = read(broker, FIRST, end)
    assert found == [each for base, stop, _ in log for each in range(base, stop)]
    requests = len(cluster.asked_offsets())
    assert requests == 4 if log is CONTIGUOUS or tail else requests <= 4 + len(HOLES)


def test_hole_that_the_tail_of_the_response_before_has_named_needs_no_request_more() -> None:
    log = log_of(6, {2: 7, 4: 9})
    _, cluster = read(Damaging(log, 2, tail=17), FIRST, log[-1][1])
    assert cluster.asked_offsets() == [log[0][0], log[1][1], log[3][1]]


def test_range_that_begins_in_a_hole_or_inside_of_a_batch_is_read_whole() -> None:
    for start in range(FIRST, COMPACTED[5][0], 3):
        end = COMPACTED[-1][1]
        found, _ = read(Damaging(COMPACTED, 3), start, end)
        assert found == [each for base, stop, _ in COMPACTED for each in range(base, stop) if each >= start]


def test_records_at_and_beyond_the_high_watermark_of_their_response_are_taken() -> None:
    """A leader reads its high watermark before the records, which may be appended and replicated in between."""
    end = CONTIGUOUS[-1][1]
    for high_watermark in (-1, 0, FIRST, FIRST + 15, end - 1):
        broker = Damaging(CONTIGUOUS, 2, high_watermark=high_watermark)
        found, cluster = read(broker, FIRST, end)
        assert found == [*range(FIRST, end)]
        assert len(cluster.asked_offsets()) == 4


def test_batch_beyond_the_high_watermark_twice_is_an_error_that_says_where() -> None:
    broker = Damaging(CONTIGUOUS, 1, high_watermark=FIRST + 80)
    broker.always, broker.bit = True, 40
    cluster = SimulatedCluster()
    cluster.add_topic("t")
    cluster.script(broker)
    with pytest.raises(CorruptRecordsError) as caught:
        Reading(cluster).values(FIRST, FIRST + 80)
    assert said(caught.value) == (
        "[CORRUPT_RECORDS] Reading t-0 [4096, 4176): 127.0.0.1:0 returned record batches for offset 4096 several times "
        "that are corrupt: the first has base offset 1099511631872, and the log ends at 4176. Checksums do not cover "
        "base offsets. No record of the range was handed out. Hint: Read the partition again; if it fails at the same "
        "offset, the log or the network path is damaged."
    )


def test_responses_that_contradict_each_other_without_end_are_an_error() -> None:
    bits = itertools.count(20)
    broker = Damaging(CONTIGUOUS, 1)

    def other_each_time(request: Any) -> Any:
        broker.always, broker.batch, broker.bit = True, 0, next(bits)
        return broker(request)

    cluster = SimulatedCluster()
    cluster.add_topic("t")
    cluster.script(other_each_time)
    with pytest.raises(CorruptRecordsError, match="several times"):
        Reading(cluster).values(FIRST, FIRST + 80)
    assert len(cluster.seen) <= 6


def test_place_takes_all_of_batches_that_follow_each_other() -> None:
    data = b"".join(batch for _, _, batch in CONTIGUOUS)
    placed = place(scan(data, FIRST), NO_END, LOG_END, None, at_boundary=True)
    assert placed == (None, None, "")
