"""The note about a slow codec."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from pyspark_kafka.records import codec_info
from pyspark_kafka.table import notes


@pytest.mark.parametrize("compiled", [True, False])
def test_codec_that_is_uncompiled_is_told_with_its_hint(compiled: bool) -> None:
    codec = type("Codec", (), {"compiled": compiled, "hint": "Install a wheel."})
    with patch.object(notes, "codec_info", lambda: codec):
        assert notes.codec_notes() == (() if compiled else ("Install a wheel.",))


def test_codec_of_this_process_is_looked_at() -> None:
    assert bool(notes.codec_notes()) is not codec_info().compiled
