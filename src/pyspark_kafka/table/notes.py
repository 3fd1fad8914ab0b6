"""What a user should know of a read or a write that works: a slow codec."""

from __future__ import annotations

from pyspark_kafka.records import codec_info


def codec_notes() -> tuple[str, ...]:
    """Return what to do if the codec runs uncompiled, many times slower; nothing otherwise."""
    codec = codec_info()
    return () if codec.compiled else (codec.hint,)
