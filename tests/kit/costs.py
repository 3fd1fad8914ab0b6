"""How much work a call is, whatever else the machine does meanwhile."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kit.fixtures.leftovers import collect_quietly

_TIMES = 5


@contextmanager
def without_collections() -> Iterator[None]:
    """Collect the garbage of the tests before, and none in the block, whose time would be that of going through it."""
    collect_quietly()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def processor_s(call: Callable[[], object], times: int = _TIMES) -> float:
    """Return the seconds of the processor that the quickest of several calls takes.

    Neither other programs count nor the garbage of the tests before, which a collection would go through.

    Args:
        call: what is measured.
        times: how many calls; 1 where a second one would do less, or a fault takes a multiple of the limit.
    """
    found = []
    with without_collections():
        for _ in range(times):
            began = time.process_time()
            call()
            found.append(time.process_time() - began)
    return min(found)
