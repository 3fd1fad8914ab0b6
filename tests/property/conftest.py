"""These tests start no process: an attempt is an error."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _alone(no_process_is_started: None) -> None:
    """Let processes that a test starts fail it."""
