"""The target of decoding: record batches under drawn options, on every variant of the kernel."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from fuzzing.draw import Draw
from fuzzing.oracles import both_variants, outcome_of, require
from pyspark_kafka.records import COLUMN_NAMES, Decoded, decode, iter_decode, scan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka.records._variant import Kernel

HEAD_BYTES = 12
_LAST = 2**63 - 1


@dataclass(frozen=True)
class Options:
    """How an input asks to be decoded."""

    start: int
    end: int | None
    common: dict[str, Any]
    target_rows: int
    target_bytes: int

    @classmethod
    def drawn(cls, draw: Draw) -> Options:
        """Take the options from the head; positions count from the first batch, where something happens."""
        flags, column_bits, at, length = draw.number(1), draw.number(1), draw.number(1, signed=True), draw.number(2)
        target_rows, target_bytes, bound = 1 + draw.number(1), 1 + 16 * draw.number(1), draw.number(1)
        aborted, producer, first = draw.number(1), draw.number(1), draw.number(1, signed=True)
        spread = draw.number(1)
        base = int.from_bytes(draw.peeked(8), "big", signed=True)
        start = min(max(base + at if flags & 8 else at, 0), _LAST)
        columns = [name for bit, name in enumerate(COLUMN_NAMES) if not column_bits >> bit & 1]
        return cls(
            start=start,
            end=min(start + length, _LAST) if flags & 4 else None,
            common={
                "isolation_level": "read_committed" if flags & 1 else "read_uncommitted",
                "check_crcs": not flags & 2,
                "columns": columns[::-1] if column_bits & 64 else columns,
                "max_decompressed_bytes": 1 << bound % 17,
                "aborted_transactions": [
                    ((producer + index) % 4, start + first + index * spread) for index in range(aborted % 4)
                ],
            },
            target_rows=target_rows,
            target_bytes=target_bytes,
        )


def batch(data: bytes, variants: Sequence[Kernel]) -> None:
    """A head of options, then the record bytes of one partition."""
    draw = Draw(data)
    options = Options.drawn(draw)
    records = draw.rest()
    found = scan(records, options.start)
    require(0 <= found.complete_bytes <= len(records), f"{found} is beyond the {len(records)} bytes")
    require(found.next_offset >= options.start, f"{found} goes back from {options.start}")
    pieces = both_variants(lambda: _pieces(records, options), variants, _same)
    whole = both_variants(lambda: _whole(records, options), variants, _same)
    if pieces is None or whole is None:
        # One piece may be emitted before the error of the next; taken together both ways end in an error.
        require(pieces is whole, "decode and iter_decode do not agree on whether the records are sound")
        _check_what_stands_before(records, options)
        return
    _check_pieces(pieces, options)
    last = pieces[-1].next_offset if pieces else options.start
    require(whole[0].next_offset == last, f"decode ends at {whole[0].next_offset}, iter_decode at {last}")
    if pieces and options.common["columns"]:
        joined = pa.Table.from_batches([piece.batch for piece in pieces])
        require(joined.equals(pa.Table.from_batches([whole[0].batch])), "decode and iter_decode return different rows")
    if options.end is None:
        require(found.next_offset == last, f"scan ends at {found.next_offset}, decoding at {last}")
    if options.common["isolation_level"] == "read_committed":
        _check_committed(records, options, sum(piece.batch.num_rows for piece in pieces))


def _pieces(records: bytes, options: Options) -> list[Decoded]:
    return list(
        iter_decode(
            records,
            start_offset=options.start,
            end_offset=options.end,
            target_rows=options.target_rows,
            target_bytes=options.target_bytes,
            **options.common,
        )
    )


def _whole(records: bytes, options: Options) -> list[Decoded]:
    return [decode(records, start_offset=options.start, end_offset=options.end, **options.common)]


def _same(left: list[Decoded], right: list[Decoded]) -> bool:
    return len(left) == len(right) and all(
        ours.next_offset == theirs.next_offset and ours.batch.equals(theirs.batch, check_metadata=True)
        for ours, theirs in zip(left, right, strict=True)
    )


def _check_pieces(pieces: list[Decoded], options: Options) -> None:
    """Offsets rise and stay in the range, positions rise and never pass the end, no piece is too large."""
    end = _LAST if options.end is None else options.end
    position = options.start
    for index, piece in enumerate(pieces):
        piece.batch.validate(full=True)
        rows = piece.batch.num_rows
        require(rows <= options.target_rows, f"a piece of {rows} rows, {options.target_rows} allowed")
        require(rows > 0 or index == len(pieces) - 1, "a piece without rows that is not the last")
        require(position <= piece.next_offset <= end, f"from {position} to {piece.next_offset}, the end is {end}")
        require(rows > 0 or piece.next_offset > position, "a piece that neither has rows nor moves on")
        if "offset" in options.common["columns"] and rows:
            offsets = piece.batch.column("offset").to_pylist()
            require(position <= offsets[0], f"offset {offsets[0]} below {position}")
            require(offsets[-1] < piece.next_offset, f"offset {offsets[-1]} and position {piece.next_offset}")
            require(all(one < other for one, other in pairwise(offsets)), f"offsets do not rise: {offsets}")
        if "timestampType" in options.common["columns"] and rows:
            kinds = set(pc.unique(piece.batch.column("timestampType")).to_pylist())
            require(kinds <= {0, 1}, f"timestamp types {kinds}")
        position = piece.next_offset


def _check_what_stands_before(records: bytes, options: Options) -> None:
    """Where an error names a byte, the batches before it are sound: the source emits them before it raises."""
    refused = outcome_of(lambda: _pieces(records, options)).error
    if refused is not None and "position" in refused.parameters:
        position = int(refused.parameters["position"])
        error = outcome_of(lambda: _pieces(records[:position], options)).error
        require(error is None, f"{refused} But before byte {position}: {error}")


def _check_committed(records: bytes, options: Options, rows: int) -> None:
    """The filter only leaves rows out, and never moves the position."""
    common = {**options.common, "isolation_level": "read_uncommitted"}
    seen = outcome_of(lambda: decode(records, start_offset=options.start, end_offset=options.end, **common)).value
    # What the filter hides is not parsed, so reading it may fail where leaving it out did not.
    if seen is not None:
        require(rows <= seen.batch.num_rows, f"{rows} committed rows of {seen.batch.num_rows}")
