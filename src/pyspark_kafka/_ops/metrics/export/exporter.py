"""All figures of this process, for exporters."""

from __future__ import annotations

import platform
import time
from typing import TYPE_CHECKING, Any

import pyspark

from pyspark_kafka._base import counters
from pyspark_kafka._base.counters import COUNTERS, Counters
from pyspark_kafka._ops.metrics.export.families import MAX_PARTITIONS, QUERY_FAMILIES, Family, Kind, query_families
from pyspark_kafka._ops.metrics.listener import STORE
from pyspark_kafka.errors import OptionError
from pyspark_kafka.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark_kafka._ops.metrics.export.lag_poller import LagPoller
    from pyspark_kafka._ops.metrics.store import MetricsStore

BUILD = Family(
    "pyspark_kafka_build_info",
    Kind.GAUGE,
    "",
    "Always 1; the versions of this package, of PySpark and of Python.",
    ("version", "pyspark", "python"),
)
START = Family(
    "pyspark_kafka_start_time_seconds",
    Kind.GAUGE,
    "seconds",
    "When this program first had figures, in seconds since 1970-01-01 UTC: a change is a restart.",
    (),
)
_COUNTED = {
    counters.RETRIES: Family(
        "pyspark_kafka_retries",
        Kind.COUNTER,
        "",
        "Pauses of the program's own process before a request to a broker was repeated.",
        (),
    ),
    counters.THROTTLE_SECONDS: Family(
        "pyspark_kafka_throttle_seconds",
        Kind.COUNTER,
        "seconds",
        "Time for which brokers throttled the program's own process because of quotas.",
        (),
    ),
    counters.OUTAGES: Family(
        "pyspark_kafka_outages",
        Kind.COUNTER,
        "",
        "Outages of brokers of 5 s and longer, as logged, for which the program's own process waited.",
        (),
    ),
    counters.OUTAGE_SECONDS: Family(
        "pyspark_kafka_outage_seconds",
        Kind.COUNTER,
        "seconds",
        "Total time of these outages, until now.",
        (),
    ),
    counters.OUTAGES_ACTIVE: Family(
        "pyspark_kafka_outages_active",
        Kind.GAUGE,
        "",
        "Outages of brokers of 5 s and longer for which the program's own process waits now.",
        (),
    ),
}
POOL_CLIENTS = Family(
    "pyspark_kafka_pool_clients",
    Kind.GAUGE,
    "",
    "Pooled clients of the program's own process: in use, and idle at the last change of the pool.",
    ("state",),
)
POOL_PRODUCERS = Family(
    "pyspark_kafka_pool_producers",
    Kind.GAUGE,
    "",
    "Pooled producers of the program's own process: in use, and idle at the last change of the pool.",
    ("state",),
)
_POOLS = (
    (POOL_CLIENTS, counters.CLIENTS_IDLE, counters.CLIENTS_LENT),
    (POOL_PRODUCERS, counters.PRODUCERS_IDLE, counters.PRODUCERS_LENT),
)
PROGRAM_FAMILIES = (BUILD, START, *_COUNTED.values(), POOL_CLIENTS, POOL_PRODUCERS)
"""What is shown about the program itself."""

_BUILD = (__version__, pyspark.__version__, platform.python_version())
_STARTED_S = time.time()


class Exporter:
    """The exported metrics of this process and its queries.

    Runs on: driver, or the client of Spark Connect; any thread, also beside queries. Waits for nobody.

    Args:
        max_partitions: the maximum of partitions with their own series; at least 0.
        store: has the figures of the queries.
        counted: the counters of the process.
        connection: options of the cluster; with them lag and headroom are fetched from its brokers, after `start`.

    Raises:
        OptionError: `max_partitions` is negative, or the options are not valid.
    """

    def __init__(
        self,
        max_partitions: int = MAX_PARTITIONS,
        store: MetricsStore = STORE,
        counted: Counters = COUNTERS,
        connection: Mapping[str, Any] | None = None,
    ) -> None:
        if max_partitions < 0:
            raise OptionError(
                f"max_partitions is {max_partitions}; it is how many partitions have a series of their own. Nothing "
                "is shown.",
                condition="OPTION_INVALID",
                hint="Set it to 0 or more.",
            )
        self._max_partitions = max_partitions
        self._store = store
        self._counted = counted
        self._poller = None if connection is None else _lag_poller(connection, store, max_partitions)

    def start(self) -> None:
        """Begin to poll brokers, if there are options for them."""
        if self._poller is not None:
            self._poller.start()

    def stop(self) -> None:
        """Send no more requests. Safe to repeat."""
        if self._poller is not None:
            self._poller.stop()

    def known(self) -> Sequence[Family]:
        """Return all families that there can be, without their series."""
        asked = () if self._poller is None else self._poller.families()
        return *QUERY_FAMILIES, *PROGRAM_FAMILIES, *(each.of(()) for each in asked)

    def now(self) -> Sequence[Family]:
        """Return the families with the values of now."""
        behind = {} if self._poller is None else self._poller.behind()
        queries = query_families(self._store.with_totals(), self._max_partitions, behind)
        asked = () if self._poller is None else self._poller.families()
        values = self._counted.values()
        return (
            *queries,
            BUILD.of([(_BUILD, 1.0)]),
            START.of([((), _STARTED_S)]),
            *(family.of([((), values.get(name, 0.0))]) for name, family in _COUNTED.items()),
            *(
                family.of([(("idle",), values.get(idle, 0.0)), (("lent",), values.get(lent, 0.0))])
                for family, idle, lent in _POOLS
            ),
            *asked,
        )


def _lag_poller(connection: Mapping[str, Any], store: MetricsStore, max_partitions: int) -> LagPoller:
    # It needs a client of Kafka, which most programs do without.
    from pyspark_kafka._ops.metrics.export.lag_poller import LagPoller  # noqa: PLC0415

    return LagPoller(connection, store, max_partitions)
