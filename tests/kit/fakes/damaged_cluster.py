"""A cluster without sockets whose log is read with one damaged bit, of those that no checksum covers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kit.fakes.handlers.fetch import FetchScript
from kit.fakes.logs import Batch
from kit.fakes.simulated_cluster import Reading, SimulatedCluster

# Of a record batch, what its checksum does not cover, and the checksum.
_UNCOVERED_BYTES = 21


class DamagedCluster(SimulatedCluster):
    """One partition, t-0; of one response one bit is flipped.

    Args:
        version: of Fetch.
        batches: the log.
        per_response: how many whole batches a response has.
        tail: how many bytes of the next batch follow, cut off.

    Attributes:
        response: the number of the response that is damaged.
        bit: the number of its bit, of those that no checksum covers; None flips none.
        bits: how many there are, once it was sent.
    """

    def __init__(self, version: int, batches: Sequence[Batch], per_response: int, tail: int = 0) -> None:
        super().__init__(version=version)
        self.add_topic("t")
        self.script(self._respond)
        self.ends["t", 0] = (batches[0][0], batches[-1][1])
        self.response = self.bits = 0
        self.bit: int | None = None
        self._batches, self._per_response, self._tail = batches, per_response, tail
        self._parsed = 0

    def _respond(self, request: Any) -> Any:
        offset = request.topics[0].partitions[0].fetch_offset
        found = [data for _, end, data in self._batches if end > offset]
        whole, rest = found[: self._per_response], found[self._per_response :]
        records = b"".join(whole) + (rest[0][: min(self._tail, len(rest[0]) - 1)] if rest else b"")
        end = self._batches[-1][1]
        return FetchScript(records, high_watermark=end, last_stable_offset=end)(request)

    def parse(self, body: bytes, version: int) -> Any:
        """As a cluster does, of bytes that may be damaged."""
        if self._parsed == self.response:
            bits = [*self._uncovered(body)]
            self.bits = len(bits)
            if self.bit is not None and bits:
                bit = bits[self.bit % len(bits)]
                damaged = bytearray(body)
                damaged[bit // 8] ^= 1 << bit % 8
                body = bytes(damaged)
        self._parsed += 1
        return super().parse(body, version)

    def _uncovered(self, body: bytes) -> Iterator[int]:
        covered: set[int] = set()
        for _, _, data in self._batches:
            start = body.find(data)
            if start >= 0:
                covered.update(range(start + _UNCOVERED_BYTES, start + len(data)))
        return (bit for bit in range(8 * len(body)) if bit // 8 not in covered)

    def values(self, start: int, end: int) -> list[int]:
        """Read a range as a source does; values are the offsets.

        Raises:
            ConnectorError: the damage was noticed.
        """
        return Reading(self, poll_timeout_ms=200).values(start, end)
