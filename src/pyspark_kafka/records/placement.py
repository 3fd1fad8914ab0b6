"""The check that a response's record batches are where their base offsets say. Pure.

The checksum of a batch does not cover its base offset: a damaged bit moves the batch, and the records that the log has
there would be passed over without an error. Brokers return the batches of a log one after the other, and only a
compaction leaves gaps between them. So a base offset is taken at its word

- if its batch follows the one before it without a gap, or
- if its gap is inside of a response, and the next batch follows, which would overlap with one that was moved up, or
- if a second response says the same.

A gap before the last batch of the range needs a second response in any case, since nothing after it is read. What the
cut-off tail of a response says of the next batch is the first of the two. No high watermark is needed for that, which
is older than the records of its response: leaders read it first. It decides about what two responses in a row say:
behind the end of the log is nothing that a gap could lead to.

What remains: a batch that is moved inside of a hole of a compacted log has other offsets than it should, but no record
is left out or read twice. And a range that begins inside of a batch and ends with it is read with this batch alone.

Source: docs/internals/fetch-rules.md, R53.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark_kafka.records.batch_header import Jump, ScannedHeaders


class Claim(NamedTuple):
    """A response's statement about the next batch, for another response to repeat.

    Attributes:
        offset: the position.
        base_offset: of the next batch.
    """

    offset: int
    base_offset: int


class Placement(NamedTuple):
    """The usable part of a response.

    Attributes:
        left_out: the first batch that is not taken; None if all are.
        claim: what the next response shall repeat; None if nothing is known about it.
        reason: what cannot be, even if the next response repeats it; empty if it can.
    """

    left_out: Jump | None
    claim: Claim | None
    reason: str = ""


def place(
    found: ScannedHeaders,
    end_offset: int,
    high_watermark: int,
    claimed: Claim | None,
    *,
    at_boundary: bool,
) -> Placement:
    """Decide up to where the batches of a response are where they say.

    Args:
        found: the batches.
        end_offset: of the range.
        high_watermark: of the same response; below 0 if it has none.
        claimed: what the response before this one said.
        at_boundary: whether the batch before the position ends there: another one cannot begin before it.
    """
    before: Jump | None = None
    gap: Jump | None = None
    unproven: Jump | None = None
    for jump in found.jumps:
        claim = Claim(jump.expected, jump.base_offset)
        if jump.base_offset < jump.ended:
            # One of the two batches was moved: the one before, if it came after a gap.
            moved = gap if gap is not None and gap.batches == jump.batches - 1 else jump
            return Placement(moved, None, "their offsets overlap")
        if jump.base_offset < jump.expected:
            if at_boundary and jump.next_offset > jump.expected:
                reason = f"the first has base offset {jump.base_offset}, inside of the batch before it"
                return Placement(jump, claim, reason)
            before = jump
            continue
        gap = jump
        if not jump.batches:
            if claim.base_offset >= high_watermark >= 0:
                reason = f"the first has base offset {jump.base_offset}, and the log ends at {high_watermark}"
                return Placement(jump, claim, reason)
            if claimed is not None and claimed.offset == jump.expected and claimed.base_offset > jump.base_offset:
                reason = (
                    f"the first has base offset {jump.base_offset}, and the last response named {claimed.base_offset}"
                )
                return Placement(jump, claimed, reason)
        if claim == claimed:
            continue
        if (
            before is not None
            and before.batches == jump.batches - 1
            and claimed != (before.expected, before.base_offset)
        ):
            # Perhaps the batch before the gap was moved down, below the position.
            return Placement(before, Claim(before.expected, before.base_offset))
        if not jump.batches or jump.next_offset >= end_offset > jump.expected:
            return Placement(jump, claim)
        unproven = jump
    is_followed = found.tail_offset >= found.next_offset
    if unproven is not None and unproven.batches == found.batches - 1 and not is_followed:
        return Placement(unproven, Claim(unproven.expected, unproven.base_offset))
    return Placement(None, Claim(found.next_offset, found.tail_offset) if is_followed else None)
