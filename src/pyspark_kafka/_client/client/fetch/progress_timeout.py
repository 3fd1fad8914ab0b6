"""The time limit of a read without progress, and its extension by an outage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._client.client.fetch.errors import no_progress
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.client.waiting.outage import may_be_outage, outage_error
from pyspark_kafka._client.client.waiting.stalls import Stall, contact_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka._client.client.fetch.session.session import FetchSession
    from pyspark_kafka._client.options import ConnectionOptions, FetchOptions
    from pyspark_kafka.errors import ConnectorError

# A broker is silent when its response comes this much later than the time for which it may wait for records.
_SILENT_S = 1.0
# A read under a quota may take longer without progress, up to this number of times the time.
_MOST_TIMES = 5


class ProgressTimeout:
    """The time of one read without progress: `poll_timeout_ms`; in an outage `outage_timeout_ms`, if it is longer.

    An end of a range that is not visible, while brokers respond, is no outage. Ranges without an end may wait forever.
    Time for which brokers throttle the client does not count, up to `_MOST_TIMES` times the time in all.

    Runs on: executor; one thread.

    Args:
        options: the cluster.
        fetch: the two times.
        session: what is read, what failed, what is in flight.
        clock: monotonic seconds.
        sleep: waits seconds.
    """

    def __init__(
        self,
        options: ConnectionOptions,
        fetch: FetchOptions,
        session: FetchSession,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self._fetch = fetch
        self._ranges = session.ranges
        self._brokers = session.brokers
        self._clock = clock
        self._sleep = sleep
        self._contact = contact_of(options.bootstrap_servers)
        self._silent_s = fetch.max_wait_ms / 1000 + _SILENT_S
        self._in_outage = self._starts_again = False
        self._throttled_before_s = 0.0
        self._reported: ConnectorError | None = None
        self.wait = Stall(self._describe, self._contact, why=self._why_slow)

    def begin(self) -> Deadline:
        """Start the time, when the caller comes for records."""
        self._in_outage = self._starts_again = False
        throttle = self._brokers.throttle
        self._throttled_before_s = throttle.total_s - throttle.left_s(self._clock()) if throttle.address else 0.0
        return Deadline(self._fetch.poll_timeout_ms, clock=self._clock, sleep=self._sleep)

    def start_again(self) -> None:
        """Record progress: bytes of a response arrive, however long the response takes."""
        self._starts_again = True
        self.wait.progress()

    def rest(self, *, fed: bool = False) -> bool:
        """Record that the caller leaves a wait and will continue it; return whether its time starts again then.

        It does if nothing fails and no broker is silent: that there is nothing to read is not a failure of a range
        without an end. If some range fails, records of others are not progress: it would be stuck for ever, and nobody
        would learn of it.

        Args:
            fed: whether the caller leaves with records.
        """
        quiet = self._ranges.forget_errors() and self._brokers.oldest_request_s(self._clock()) <= self._silent_s
        if quiet:
            self._reported = None
            if fed or self._brokers.throttle.until <= self._clock():
                self.wait.progress()
        return quiet

    def check(self, progress: Deadline) -> Deadline:
        """Return the deadline to continue with.

        Raises:
            DeadlineError: no progress for the time that it may take.
        """
        last_error = self._ranges.last_error
        if last_error is not self._reported:
            self._reported = last_error
            if last_error is not None:
                self.wait.failed(last_error)
        if self._starts_again or (self._in_outage and not self._is_outage(progress)):
            # Brokers respond; whether the requested records can be seen now is another wait.
            return self.begin()
        if not progress.expired:
            return progress
        outage_ms = self._fetch.outage_timeout_ms
        failing = outage_ms > 0 and self._is_outage(progress)
        if failing and not (longer := progress.extended(outage_ms)).expired:
            self._in_outage = True
            return longer
        if failing:
            lasted_s = progress.elapsed_ms() / 1000
            raise outage_error(self._describe(), lasted_s, self._contact, last_error) from last_error
        if last_error is None and not self._ranges.must_progress:
            return self.begin()
        # Not by its whole milliseconds, of which one may be missing in a time that has expired: it would expire again.
        longer = progress.extended(self._with_throttling(progress))
        if not longer.expired:
            return longer
        raise no_progress(
            self._ranges.active,
            progress.timeout_ms,
            last_error,
            self._why_slow(),
            cut_short=self._ranges.last_was_cut_short,
        ) from last_error

    @property
    def _throttled_s(self) -> float:
        """For how many seconds of the time brokers have throttled the client, or will."""
        return self._brokers.throttle.total_s - self._throttled_before_s

    def _with_throttling(self, progress: Deadline) -> float:
        """Return the time that a read under a quota may take, in ms since the start of `progress`."""
        timeout_ms = self._fetch.poll_timeout_ms
        longest_ms = timeout_ms * _MOST_TIMES
        until_ms = progress.elapsed_ms() + self._brokers.throttle.left_s(self._clock()) * 1000
        # Throttled beyond all that: it would be waited for in vain.
        return timeout_ms if until_ms > longest_ms else min(longest_ms, timeout_ms + self._throttled_s * 1000)

    def _is_outage(self, progress: Deadline) -> bool:
        if any(
            cursor.last_failure is not None and may_be_outage(cursor.last_failure) for cursor in self._ranges.active
        ):
            return True
        return min(self._brokers.oldest_request_s(self._clock()), progress.elapsed_ms() / 1000) > self._silent_s

    def _why_slow(self) -> str:
        """Return why nothing comes, if a broker throttles the client, as a clause."""
        return self._brokers.throttle.describe(self._throttled_s, self._clock())

    def _describe(self) -> str:
        active = self._ranges.active
        if not active:
            return "reading"
        cursor = next((cursor for cursor in active if cursor.last_failure is not None), active[0])
        others = f" (and {len(active) - 1} other ranges)" if len(active) > 1 else ""
        return f"reading {cursor.offset_range} at offset {cursor.position}{others}"
