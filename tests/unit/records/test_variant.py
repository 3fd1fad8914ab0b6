"""Which variant of the kernel runs, and how the user learns of it."""

from __future__ import annotations

from pyspark_kafka.records import codec_info


def test_codec_info_names_the_variant_in_use(codec_variant: str) -> None:
    info = codec_info()
    assert info.compiled is (codec_variant == "compiled")
    assert info.path.endswith(".py") is not info.compiled
    assert bool(info.hint) is not info.compiled
    assert info.notes == (() if info.compiled else (info.hint,))
