"""The target of the channel of continuous queries: what a driver and its tasks take from a connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fuzzing.draw import Draw
from fuzzing.oracles import require
from pyspark_kafka.continuous.channel.frames import BadFrameError, Direction, FrameReader, FrameWriter
from pyspark_kafka.continuous.epochs.messages import BadMessageError, decode, encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka.records._variant import Kernel

KEY = b"k" * 32
# What comes next on the connection: a frame of a member, bytes of anyone, a frame for the other side, one again.
SIGNED, RAW, OTHER_SIDE, AGAIN = range(4)


def channel(data: bytes, variants: Sequence[Kernel]) -> None:  # noqa: ARG001 - every target is called alike
    """One byte for how the bytes are cut, then frames and other bytes: only what members signed comes out, in order."""
    draw = Draw(data)
    cut = draw.number(1) + 1
    writer, other = FrameWriter(KEY, Direction.TO_DRIVER), FrameWriter(KEY, Direction.TO_TASK)
    sent = bytearray()
    payloads: list[bytes] = []
    newest = b""
    # From the first byte that no member has signed, nothing may come out.
    is_whole = True
    while not draw.spent:
        kind = draw.pick((SIGNED, RAW, OTHER_SIDE, AGAIN))
        part = draw.taken(draw.number(2))
        if kind == SIGNED:
            newest = writer.frame(part)
            sent += newest
            if is_whole:
                payloads.append(part)
            continue
        made = {RAW: part, OTHER_SIDE: other.frame(part), AGAIN: newest}[kind]
        sent += made
        is_whole = is_whole and not made
    reader = FrameReader(KEY, Direction.TO_DRIVER)
    found: list[bytes] = []
    try:
        for begin in range(0, len(sent), cut):
            found += reader.feed(bytes(sent[begin : begin + cut]))
    except BadFrameError:
        # It may refuse a frame of a member that is too large for a stranger's first.
        require(not is_whole or any(len(each) > 1024 for each in payloads[:1]), "whole frames were refused")
    else:
        require(found == payloads or not is_whole, "whole frames were lost")
    require(found == payloads[: len(found)], "something came out that no member has signed, or in another order")
    for payload in found:
        _message(payload)


def _message(payload: bytes) -> None:
    try:
        message = decode(payload)
    except BadMessageError:
        return
    require(decode(encode(message)) == message, f"{message} is another one after a way through JSON")
