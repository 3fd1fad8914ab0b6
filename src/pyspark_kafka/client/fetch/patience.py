"""How long a read goes on without progress: what bounds it, and when an outage of brokers makes it longer.

What must not live here: requests and answers (`fetch_many`), what an answer means (`fetch_state`). Layer: client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka.client.deadline import Deadline
from pyspark_kafka.client.fetch.errors import no_progress
from pyspark_kafka.client.outage import is_weather, outage_error
from pyspark_kafka.client.waiting import Wait, contact_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from pyspark_kafka.client.fetch.cursor import PartitionRead
    from pyspark_kafka.client.fetch.lanes import Lane
    from pyspark_kafka.errors import ConnectorError
    from pyspark_kafka.options import ConnectionOptions, FetchOptions

# A broker that owes an answer for so much longer than it may sit on a request is silent.
_SILENT_MS = 1_000


class FetchPatience:
    """The time of one read without progress: `poll_timeout_ms`; in an outage `outage_timeout_ms`, if it is longer.

    An end that is not visible, while brokers answer, is no outage.

    Runs on: executor; one thread.

    Args:
        options: the cluster.
        fetch: the two times.
        active: gives the reads that are not done; the first one is named in reports.
        clock: monotonic seconds.
        sleep: waits seconds.
    """

    def __init__(
        self,
        options: ConnectionOptions,
        fetch: FetchOptions,
        active: Callable[[], Sequence[PartitionRead]],
        clock: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self._fetch = fetch
        self._active = active
        self._clock = clock
        self._sleep = sleep
        self._contact = contact_of(options.bootstrap_servers)
        self._in_outage = False
        self.wait = Wait(self._describe, self._contact)

    def begin(self) -> Deadline:
        """Start the time, when the caller comes for records."""
        self._in_outage = False
        return Deadline(self._fetch.poll_timeout_ms, clock=self._clock, sleep=self._sleep)

    def outlasts(self, error: ConnectorError) -> bool:
        """Tell whether a failure that is final elsewhere is one of an outage here."""
        return bool(self._fetch.outage_timeout_ms) and is_weather(error)

    def check(self, progress: Deadline, lanes: Collection[Lane], last_error: ConnectorError | None) -> Deadline:
        """Give the deadline to go on with.

        Raises:
            DeadlineError: no progress for the time that it may take.
        """
        if self._in_outage and not self._is_outage(progress, lanes):
            # Brokers answer again; whether what is asked for can be seen now is another wait.
            return self.begin()
        if not progress.expired:
            return progress
        outage_ms = self._fetch.outage_timeout_ms
        failing = outage_ms > 0 and self._is_outage(progress, lanes)
        if failing and progress.elapsed_ms() < outage_ms:
            self._in_outage = True
            return progress.extended(outage_ms)
        if failing:
            raise outage_error(
                self._describe(), progress.elapsed_ms() / 1000, self._contact, last_error
            ) from last_error
        raise no_progress(self._active(), progress.timeout_ms, last_error) from last_error

    def _is_outage(self, progress: Deadline, lanes: Collection[Lane]) -> bool:
        if any(read.failure is not None and is_weather(read.failure) for read in self._active()):
            return True
        now, silent_ms = self._clock(), self._fetch.max_wait_ms + _SILENT_MS
        waited_ms = progress.elapsed_ms()
        return any(
            lane.asked is not None and min((now - lane.asked.at) * 1000, waited_ms) > silent_ms for lane in lanes
        )

    def _describe(self) -> str:
        active = self._active()
        if not active:
            return "reading"
        read = next((read for read in active if read.failure is not None), active[0])
        others = f" (and {len(active) - 1} other ranges)" if len(active) > 1 else ""
        return f"reading {read.offset_range} at offset {read.position}{others}"
