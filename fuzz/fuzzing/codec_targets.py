"""Targets of the compression codecs: what another program wrote, or nobody did, into a bounded buffer."""

from __future__ import annotations

import zlib
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import lz4.frame

from fuzzing.draw import Draw
from fuzzing.oracles import require
from pyspark_kafka.records.compression import CODEC_NAMES, CodecError, Decompressor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark_kafka.records._variant import Kernel

# Two bytes of an input say how much it may decompress to, at most 64 KiB.
HEAD_BYTES = 2


def _decompress(codec: int, data: bytes, variants: Sequence[Kernel]) -> None:  # noqa: ARG001 - called alike
    """Decompress twice with one decompressor: its buffer is used again, and the result must be the same."""
    draw = Draw(data)
    bound = draw.number(HEAD_BYTES) + 1
    body = draw.rest()
    decompressor = Decompressor(bound)
    found: list[bytes | str] = []
    for _ in range(2):
        try:
            found.append(bytes(decompressor.decompress(codec, memoryview(body))))
        except CodecError as error:
            found.append(str(error))
    require(found[0] == found[1], f"the second time it differs: {found}")
    if isinstance(found[0], bytes):
        require(len(found[0]) <= bound, f"{len(found[0])} bytes came out, {bound} are allowed")
        expected = _reference(codec, body, bound)
        require(expected is None or expected == found[0], f"another reader finds {expected!r}, ours {found[0]!r}")


def _reference(codec: int, data: bytes, bound: int) -> bytes | None:
    """Decompress with another library; None when it refuses, or for codecs where there is none."""
    with suppress(zlib.error, RuntimeError, EOFError):
        if CODEC_NAMES[codec] == "gzip":
            return _gunzip(data, bound)
        if CODEC_NAMES[codec] == "lz4":
            stream = lz4.frame.LZ4FrameDecompressor()
            out = bytes(stream.decompress(data, max_length=bound + 1))
            # Of several frames it reads the first one only.
            return out if stream.eof and not stream.unused_data else None
    return None


def _gunzip(data: bytes, bound: int) -> bytes | None:
    out = b""
    while data:
        member = zlib.decompressobj(wbits=31)
        out += member.decompress(data, bound + 1 - len(out))
        if not member.eof or len(out) > bound:
            return None
        data = member.unused_data
    return out


TARGETS: dict[str, Callable[[bytes, Sequence[Kernel]], None]] = {
    f"codec_{name}": partial(_decompress, codec) for codec, name in enumerate(CODEC_NAMES) if codec
}
