"""Warnings about long waits: which step waits for brokers, since when, the last failure, the last response.

A thread logs them, also while the waiting thread is blocked inside one call of a socket. Nothing here changes what a
step does; `outage.py` decides how long an outage is waited out.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark_kafka._base.counters import COUNTERS, OUTAGE_SECONDS, OUTAGES, OUTAGES_ACTIVE, Counters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from pyspark_kafka.errors import ConnectorError

_LOG = logging.getLogger(__name__)

# When the first line about a wait is logged, and how long after each line the next one.
_FIRST_WARNING_S = 5.0
_WARN_EVERY_S = 30.0
# How often the reporting thread looks, and after how many looks without a wait it ends.
_LOOK_EVERY_S = 1.0
_IDLE_LOOKS = 10
# Sentences of errors of `net/errors.py` and `cluster/bootstrap.py`.
_FOR_NEWCOMERS = re.compile(r" (?:This often means|It may be overloaded, or|Nothing was read or written)[^.]*\.")


class Contact:
    """The broker of a cluster that responded to this process last. Written by every connection, read by reports.

    Attributes:
        address: of the broker; empty before the first response.
        at: when it responded, seconds of `time.monotonic`.
    """

    __slots__ = ("address", "at")

    def __init__(self) -> None:
        self.address = ""
        self.at = 0.0

    def answered(self, address: str) -> None:
        """Record a response; called for every one of them."""
        self.address = address
        self.at = time.monotonic()

    @property
    def known(self) -> bool:
        """Whether any broker of the cluster has responded to this process."""
        return bool(self.address)

    def describe(self) -> str:
        """Return the last response as a clause: which broker, when, and how long ago."""
        if not self.known:
            return "no broker has answered this process yet"
        age_s = time.monotonic() - self.at
        return f"{self.address} answered last, at {clock_time(age_s)} ({age_s:.0f} s ago)"


# By bootstrap servers: how this process names its clusters. An entry is a few words; processes know few clusters.
_CONTACTS: dict[tuple[tuple[str, int], ...], Contact] = {}


def contact_of(bootstrap_servers: tuple[tuple[str, int], ...]) -> Contact:
    """Return the contact of this process with a cluster; the same object for the same servers."""
    return _CONTACTS.setdefault(bootstrap_servers, Contact())


def clock_time(age_s: float) -> str:
    """Return the local time of day of `age_s` seconds ago; with the date if that was another day."""
    at, now = time.localtime(time.time() - age_s), time.localtime()
    return time.strftime("%H:%M:%S" if at[:3] == now[:3] else "%Y-%m-%d %H:%M:%S", at)


class Stall:
    """A step of a thread that may have to wait for brokers.

    Enter it around the calls that may block, and report progress and failures to it. Between `with` blocks its clock
    stands still: the caller's own time is not an outage. A wait inside of another one of the same thread is a detail of
    that: the outer one is logged.

    Runs on: driver and executor. One thread at a time. Entering costs about a microsecond.

    Args:
        what: the step, for a sentence "Waiting for Kafka: …"; called when there is something to log.
        contact: which broker responded last.
        monitor: where it is registered; tests pass their own.
        why: returns why there is no progress although nothing failed, as a clause; empty if that is not known.
    """

    __slots__ = (
        "_contact",
        "_failure",
        "_inner",
        "_left_at",
        "_monitor",
        "_outage_s",
        "_outer",
        "_since",
        "_started_at",
        "_warned_at",
        "_what",
        "_why",
    )  # fmt: skip

    def __init__(
        self,
        what: Callable[[], str],
        contact: Contact,
        monitor: StallMonitor | None = None,
        *,
        why: Callable[[], str] | None = None,
    ) -> None:
        self._what = what
        self._why = why
        self._contact = contact
        self._monitor = _MONITOR if monitor is None else monitor
        self._outer: Stall | None = None
        self._inner: Stall | None = None
        # Since when there is no progress: of all time, and of the time within `with` blocks.
        self._started_at: float | None = None
        self._since = 0.0
        self._left_at = 0.0
        self._outage_s = 0.0
        self._failure: ConnectorError | None = None
        self._warned_at: float | None = None

    def __enter__(self) -> Stall:  # noqa: PYI034 - typing.Self needs Python 3.11
        now = self._monitor.clock()
        if self._started_at is None:
            self._started_at = self._since = now
        else:
            self._since += now - self._left_at
        self._outer = self._monitor.enter(self)
        if self._outer is not None:
            self._outer._inner = self  # noqa: SLF001 - the same class
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left_at = self._monitor.clock()
        if self._outer is not None:
            self._outer._inner = None  # noqa: SLF001 - the same class
        self._monitor.leave(self, self._outer)
        self._outer = None

    def failed(self, error: ConnectorError) -> None:
        """Record the reason of the last failed attempt; reports repeat it."""
        self._failure = error
        if self._outer is None:
            _tell(error)
        else:
            self._outer.failed(error)

    def progress(self) -> None:
        """Record progress of the step; log the end of the wait if a warning was logged."""
        now = self._monitor.clock()
        if self._warned_at is not None:
            self._monitor.report_end(self)
        if self._failure is not None or self._warned_at is not None:
            self._outage_s += now - self._since
        self._started_at = self._since = self._left_at = now
        self._warned_at = self._failure = None
        if self._outer is not None:
            self._outer.progress()

    @property
    def waited_s(self) -> float:
        """The time without progress; only to be read inside of a `with` block."""
        return self._monitor.clock() - self._since

    @property
    def outage_s(self) -> float:
        """The seconds of outages in the wait, ended by progress or not ended yet."""
        return self._outage_s + (self.waited_s if self._failure is not None or self._warned_at is not None else 0.0)

    @property
    def failure(self) -> ConnectorError | None:
        """The reason of the last failed attempt; None if there was progress since, or only silence."""
        return self._failure

    @property
    def warned_at(self) -> float | None:
        """The time of the last line about it in the log."""
        return self._warned_at

    def describe(self) -> str:
        """Return the steps that wait, the innermost last."""
        inner = self._inner
        return self._what() if inner is None else f"{self._what()}: {inner.describe()}"

    def warn(self) -> None:
        """Log which step waits, since when, the last failure, and the broker that responded last."""
        self._warned_at = now = self._monitor.clock()
        failure = self._failure
        reason = self._reason() if failure is None else what_failed(failure).rstrip(".")
        _LOG.warning(
            "Waiting for Kafka: %s, for %.0f s (since %s). Last failure: %s; %s.",
            self.describe(), now - self._since, clock_time(now - (self._started_at or now)), reason,
            self._contact.describe(),
        )  # fmt: skip

    def _reason(self) -> str:
        why = "" if self._why is None else self._why()
        if not why and self._inner is not None:
            return self._inner._reason()  # noqa: SLF001 - the same class
        return why or "no failure, no answer"

    def over(self) -> None:
        """Log that the waiting is over."""
        now = self._monitor.clock()
        _LOG.warning(
            "Waiting for Kafka is over after %.0f s (since %s): %s; %s.",
            now - self._since, clock_time(now - (self._started_at or now)), self._what(), self._contact.describe(),
        )  # fmt: skip


def what_failed(error: ConnectorError) -> str:
    """Return an error's text without hints and guesses about listeners, which are for a first connection."""
    return _FOR_NEWCOMERS.sub("", f"[{error.condition}] {error.message}")


class StallMonitor:
    """The waits of this process, and the thread that reports the long ones.

    The thread exists while there are waits and some seconds longer; it is a daemon, and a forked child starts without.

    Args:
        first_s: after how many seconds the first line about a wait is logged.
        every_s: how many seconds after each line the next one is logged.
        look_every_s: how often the thread looks.
        clock: monotonic seconds; tests pass their own.
        counters: of outages; tests pass their own.
    """

    def __init__(
        self,
        *,
        first_s: float = _FIRST_WARNING_S,
        every_s: float = _WARN_EVERY_S,
        look_every_s: float = _LOOK_EVERY_S,
        clock: Callable[[], float] = time.monotonic,
        counters: Counters = COUNTERS,
    ) -> None:
        self.clock = clock
        self._counters = counters
        self._first_s = first_s
        self._every_s = every_s
        self._look_every_s = look_every_s
        self.reset()

    def reset(self) -> None:
        """Forget everything, in a forked child: its parent's threads are not there."""
        self._lock = threading.Lock()
        # Serializes lines: a wait that ends while it is reported is not reported after its end.
        self._reporting = threading.Lock()
        self._waiting: dict[int, Stall] = {}
        self._looked_at = 0.0
        self._local = threading.local()
        self._thread: threading.Thread | None = None

    def enter(self, stall: Stall) -> Stall | None:
        """Register a wait of this thread; return the wait that surrounds it."""
        outer: Stall | None = getattr(self._local, "innermost", None)
        if outer is None:
            ident = threading.get_ident()
            self._waiting[ident] = stall
            # Read after the wait is registered; the thread looks once more after it has taken itself out.
            if self._thread is None:
                try:
                    self._start()
                except BaseException:
                    # No wait is left that could not be entered.
                    del self._waiting[ident]
                    raise
        self._local.innermost = stall
        return outer

    def leave(self, stall: Stall, outer: Stall | None) -> None:
        """Take a wait out again."""
        self._local.innermost = outer
        if outer is None:
            ident = threading.get_ident()
            if self._waiting.get(ident) is stall:
                del self._waiting[ident]

    def report_end(self, stall: Stall) -> None:
        """Log that a wait is over about which a warning was logged."""
        with self._reporting:
            stall.over()

    def report(self) -> None:
        """Log a line for each wait that is due, and count what was logged: an outage, and its time until now."""
        now = self.clock()
        # A wait may have been left, and entered again, since the thread looked for the last time.
        since = min(now - self._looked_at, 2 * self._look_every_s)
        active = 0
        for ident, stall in list(self._waiting.items()):
            with self._reporting:
                if self._waiting.get(ident) is not stall:
                    continue
                begun = stall.warned_at is None
                if self._due(stall):
                    stall.warn()
                if stall.warned_at is not None:
                    active += 1
                    self._counters.add_count(OUTAGES, begun)
                    self._counters.add_count(OUTAGE_SECONDS, stall.waited_s if begun else since)
        self._looked_at = now
        self._counters.set(OUTAGES_ACTIVE, active)

    def _due(self, stall: Stall) -> bool:
        if stall.warned_at is None:
            return stall.waited_s >= self._first_s
        return self.clock() - stall.warned_at >= self._every_s

    def innermost(self) -> Stall | None:
        """Return the wait that this thread is inside of."""
        return getattr(self._local, "innermost", None)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="pyspark-kafka-waits", daemon=True)
                thread.start()
                # Not before: a thread that cannot be started is missing, so that the next wait tries again.
                self._thread = thread

    def _run(self) -> None:
        idle = 0
        while True:
            time.sleep(self._look_every_s)
            try:
                self.report()
            except Exception:  # noqa: BLE001 - it is logged
                # A line that cannot be written must not end the reports of this process.
                _LOG.exception("A wait for brokers could not be reported.")
            idle = 0 if self._waiting else idle + 1
            if idle < _IDLE_LOOKS:
                continue
            with self._lock:
                self._thread = None
                if not self._waiting:
                    return
                self._thread = threading.current_thread()
                idle = 0


_MONITOR = StallMonitor()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_MONITOR.reset)


# What threads want to hear of their own failures, by thread: `hearing_failures`.
_LISTENERS: dict[int, Callable[[ConnectorError], object]] = {}


def note_failure(error: ConnectorError) -> None:
    """Record the reason of a failed attempt at this thread's innermost wait, if any."""
    stall = _MONITOR.innermost()
    if stall is None:
        _tell(error)
    else:
        stall.failed(error)


@contextmanager
def hearing_failures(listener: Callable[[ConnectorError], object]) -> Iterator[None]:
    """Call `listener` with each failure in this thread that is followed by another attempt, inside the block.

    Runs on: driver. The listener is called in the same thread; it must not block.
    """
    ident = threading.get_ident()
    outer = _LISTENERS.get(ident)
    _LISTENERS[ident] = listener
    try:
        yield
    finally:
        if outer is None:
            del _LISTENERS[ident]
        else:
            _LISTENERS[ident] = outer


def _tell(error: ConnectorError) -> None:
    listener = _LISTENERS.get(threading.get_ident())
    if listener is not None:
        listener(error)


def outage_s_here() -> float:
    """Return the seconds of outages in this thread's current wait; 0 without a wait."""
    stall = _MONITOR.innermost()
    return 0.0 if stall is None else stall.outage_s
