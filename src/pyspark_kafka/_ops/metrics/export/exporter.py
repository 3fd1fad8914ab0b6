"""All figures of this process and of processes beside it, for exporters."""

from __future__ import annotations

import platform
import re
import threading
import time
from typing import TYPE_CHECKING, Any

import pyspark

from pyspark_kafka._base.counters import COUNTERS
from pyspark_kafka._connector.spark.processes.counter_files import DRIVER, TASK, CounterFiles, ProcessTotals
from pyspark_kafka._ops.metrics.export.families import MAX_PARTITIONS, QUERY_FAMILIES, Family, Kind, query_families
from pyspark_kafka._ops.metrics.export.process_families import PROCESS_FAMILIES, process_families
from pyspark_kafka._ops.metrics.listener import STORE
from pyspark_kafka.errors import OptionError
from pyspark_kafka.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import SparkSession

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
PROGRAM_FAMILIES = BUILD, START
"""What is shown about the program itself."""

_BUILD = (__version__, pyspark.__version__, platform.python_version())
_STARTED_S = time.time()

# Masters whose tasks run on the driver's machine, with its folder for files; `local-cluster` is none.
_LOCAL = re.compile(r"local(\[|$)")


class Processes:
    """The counters of this process, and of the processes that Spark has started for it on this machine.

    Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # One Spark application after the other, in a program that stops its session and starts another.
        self._applications: dict[str, CounterFiles] = {}
        # The roles whose processes are all seen: they have zeros before they have counted anything.
        self._roles: set[str] = set()

    def join(self, session: SparkSession) -> None:
        """Take in the processes of a session's application: from now on they write down what they count.

        On Spark Connect they are processes of the server, which the client cannot see.
        """
        if not hasattr(session, "_jsparkSession"):
            return
        from pyspark import SparkFiles  # noqa: PLC0415 - of classic Spark

        root = SparkFiles.getRootDirectory()
        # On a cluster the processes of tasks are elsewhere, and zeros would say that nothing happens there.
        roles = {DRIVER, TASK} if _LOCAL.match(session.sparkContext.master or "") else {DRIVER}
        with self._lock:
            self._roles |= roles
            if root not in self._applications:
                self._applications[root] = CounterFiles(root)

    def totals(self) -> dict[str, ProcessTotals]:
        """Return the counters by role; this process is one of the driver's, if it has counted anything.

        A role whose processes are all seen is there from the beginning, without counters: who compares a number with a
        former one needs the zero.
        """
        with self._lock:
            applications = list(self._applications.values())
            found = {role: ProcessTotals() for role in self._roles}
        for application in applications:
            for role, totals in application.read().items():
                sums = found.setdefault(role, ProcessTotals())
                sums.add(totals.values, alive=True)
                sums.processes += totals.processes - 1
        if own := COUNTERS.values():
            found.setdefault(DRIVER, ProcessTotals()).add(own, alive=True)
        return found


PROCESSES = Processes()
"""The processes of this program."""


class Exporter:
    """What is shown of the queries of this process, and of the processes that run them.

    Runs on: driver, or the client of Spark Connect; any thread, also beside queries. Waits for nobody.

    Args:
        max_partitions: how many partitions have a series of their own; at least 0.
        store: has the figures of the queries.
        totals: returns the counters of processes by role.
        connection: options of the cluster; with them its brokers are asked for lag and headroom, after `start`.

    Raises:
        OptionError: `max_partitions` is negative, or the options are not valid.
    """

    def __init__(
        self,
        max_partitions: int = MAX_PARTITIONS,
        store: MetricsStore = STORE,
        totals: Callable[[], Mapping[str, ProcessTotals]] = PROCESSES.totals,
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
        self._totals = totals
        self._poller = None if connection is None else _lag_poller(connection, store, max_partitions)

    def start(self) -> None:
        """Begin to ask brokers, if there are options for that."""
        if self._poller is not None:
            self._poller.start()

    def stop(self) -> None:
        """Ask them no more. Safe to repeat."""
        if self._poller is not None:
            self._poller.stop()

    def known(self) -> Sequence[Family]:
        """Return all families that there can be, without their series."""
        asked = () if self._poller is None else self._poller.families()
        return *QUERY_FAMILIES, *PROCESS_FAMILIES, *PROGRAM_FAMILIES, *(each.of(()) for each in asked)

    def now(self) -> Sequence[Family]:
        """Return the families with the values of now."""
        behind = {} if self._poller is None else self._poller.behind()
        queries = query_families(self._store.with_totals(), self._max_partitions, behind)
        asked = () if self._poller is None else self._poller.families()
        return (
            *queries,
            *process_families(self._totals()),
            BUILD.of([(_BUILD, 1.0)]),
            START.of([((), _STARTED_S)]),
            *asked,
        )


def _lag_poller(connection: Mapping[str, Any], store: MetricsStore, max_partitions: int) -> LagPoller:
    # It needs a client of Kafka, which most programs do without.
    from pyspark_kafka._ops.metrics.export.lag_poller import LagPoller  # noqa: PLC0415

    return LagPoller(connection, store, max_partitions)
