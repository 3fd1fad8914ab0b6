"""Every test in this folder runs with both variants of the Avro codec."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _both_variants(avro_variant: str) -> None:
    """Run the test once with each variant of the kernel."""
