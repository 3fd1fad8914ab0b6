"""Waits for what other processes do, which has no event to wait for."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(condition: Callable[[], bool], timeout_s: float = 120.0) -> None:
    """Look until it holds."""
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, f"it did not come to that within {timeout_s:g} s"
        time.sleep(0.05)
