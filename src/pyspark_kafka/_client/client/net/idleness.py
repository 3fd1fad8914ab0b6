"""The maximum idle time of trusted connections. No I/O.

Firewalls and load balancers forget idle connections: nothing that is sent on them arrives, and neither side notices.
Azure's balancers do after 240 s, others after 60 to 350 s.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka._client.options import ConnectionOptions

# After this idle time, the first request is watched…
IDLE_S = 5.0
# …and the connection is replaced if it brings nothing within this time.
SILENT_S = 1.0
# The same for a connection that was lent again sooner: it is hardly ever forgotten, and brokers under load are slow.
_LENT_SILENT_S = 2.0


def doubt_after_s(idle_s: float, *, was_lent: bool) -> float:
    """Return for how long the first response of a connection may be missing; infinite if it was not idle."""
    if idle_s >= IDLE_S:
        return SILENT_S
    return _LENT_SILENT_S if was_lent else math.inf


class IdleTimes:
    """The check that an idle connection of this process can be used, by cluster.

    Runs on: driver and executor; any thread.

    Args:
        clock: monotonic seconds; tests pass their own.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # The last response of a forgotten connection: connections idle for as long are forgotten, too.
        self._forgotten: dict[tuple[tuple[str, int], ...], float] = {}

    def note_forgotten(self, options: ConnectionOptions, heard_at: float) -> None:
        """Record that a connection is dead, with the time of its last response."""
        known = self._forgotten.get(options.bootstrap_servers, -math.inf)
        self._forgotten[options.bootstrap_servers] = max(known, heard_at)

    def allow(self, options: ConnectionOptions, heard_at: float) -> bool:
        """Return whether a connection can be used, by the time of its last response."""
        if heard_at <= self._forgotten.get(options.bootstrap_servers, -math.inf):
            return False
        return options.max_idle_ms < 0 or self._clock() - heard_at <= options.max_idle_ms / 1000


IDLE_TIMES = IdleTimes()
