"""Waits for what other processes and threads do, and the one limit of all of them."""

from __future__ import annotations

import time
from collections.abc import Callable

# How long a test waits for what it is to see. Far longer than any machine takes, however busy it is: only a test that
# fails waits for it. A shorter wait fails on a busy machine, unless silence or a limit of time is what is tested.
PATIENCE_S = 120.0


def eventually(condition: Callable[[], bool], timeout_s: float = PATIENCE_S) -> None:
    """Look until it holds."""
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, f"it did not come to that within {timeout_s:g} s"
        time.sleep(0.05)
