"""Every input that fuzzing kept, on both variants of the kernel: a result or a typed error, and the same from both."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzzing.seeds import seeds_of
from fuzzing.targets import TARGETS
from pyspark_kafka.records import _variant
from pyspark_kafka.records._variant import Kernel

CORPUS = Path(__file__).resolve().parents[2] / "fuzz" / "corpus"


@pytest.mark.parametrize("target", TARGETS)
def test_corpus_entry_gives_a_result_or_a_typed_error(target: str, codec_variant: str) -> None:
    # The uncompiled variant is compared with the compiled one where that is there.
    variants: list[Kernel] = [_variant.kernel]
    compiled = _variant.load_compiled()
    if codec_variant == "uncompiled" and compiled is not None:
        variants.append(compiled)
    entries = {path.name: path.read_bytes() for path in sorted((CORPUS / target).iterdir())}
    assert entries
    for name, data in entries.items():
        try:
            TARGETS[target].run(data, variants)
        except Exception as error:
            raise AssertionError(f"fuzz/corpus/{target}/{name}: {type(error).__name__}: {error}") from error


@pytest.mark.parametrize("target", TARGETS)
def test_the_valid_inputs_that_fuzzing_begins_with_are_taken(target: str) -> None:
    for data in seeds_of(target):
        TARGETS[target].run(data, [_variant.kernel])
