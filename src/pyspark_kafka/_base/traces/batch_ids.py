"""The trace id of a micro-batch or of an epoch, which all its processes find without a message. Pure."""

from __future__ import annotations

import hashlib


def batch_trace_id(run_id: str, batch: int | str) -> int:
    """Return the trace id of one micro-batch or epoch: 128 bits, as good as random, because the id of a run is.

    Args:
        run_id: of this start of the query.
        batch: the number of the micro-batch or of the epoch.
    """
    digest = hashlib.sha256(f"{run_id}/{batch}".encode()).digest()
    return int.from_bytes(digest[:16], "big") or 1
