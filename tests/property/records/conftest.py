"""Every test in this folder runs with both variants of the record codec."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _both_variants(codec_variant: str) -> None:
    """Run the test once with each variant of the kernel."""
