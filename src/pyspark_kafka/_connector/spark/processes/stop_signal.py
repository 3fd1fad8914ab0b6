"""SIGTERM in the process that plans a streaming query: the stream is stopped before the process ends.

Spark (`PythonStreamingSourceRunner.stop`) ends that process by the signal, and never calls `stop` of its reader.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import cast

from pyspark_kafka._connector.spark.processes.running_module import module_of_spark

_LOG = logging.getLogger(__name__)

# Nobody waits for the process by now, and nobody would end one that hangs.
_MAX_STOP_S = 5.0
_WAKE_MAIN_THREAD_S = 0.1


def stop_at_sigterm(stop: Callable[[], None]) -> None:
    """From now on, call `stop` when this process gets SIGTERM, and then end by that signal, at most 5 s later.

    Does nothing in a user's program, where something else handles the signal, or outside of the main thread. Where
    something else handles it later, the signal is its own. A fork of the process ends by the signal as if this had not
    been called.

    Runs on: driver, in the process that plans one query.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not module_of_spark() or not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return

    began: list[int] = []

    def end(number: int, _: FrameType | None) -> None:
        # Spark sends the signal twice. The second one may interrupt this function before it is ignored; a lock that the
        # function holds, such as the lock of an event, would then be waited for by its own thread, for ever.
        signal.signal(number, signal.SIG_IGN)
        began.append(number)
        try:
            stop()
        except Exception:  # noqa: BLE001 - the process ends; the log is all that is left
            _LOG.warning("The stream could not be stopped.", exc_info=True)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    pipe = _watch(began, lambda: signal.getsignal(signal.SIGTERM) is end)
    signal.signal(signal.SIGTERM, end)
    if hasattr(os, "register_at_fork"):  # not on Windows
        os.register_at_fork(after_in_child=lambda: _forget(end, pipe))


def _watch(began: Sequence[int], is_ours: Callable[[], bool]) -> list[int]:
    """Have a thread end the process some time after SIGTERM; return both ends of its pipe, none if it has none.

    The handler itself runs only when the main thread is back in the interpreter, which a look-up of a name, or a call
    of a file system, may keep it from for long. The number of the signal is written to the pipe at once,
    whoever handles it.

    Args:
        began: the signals whose handler runs.
        is_ours: whether the process ends at the signal; asked in that thread when the signal has come.
    """
    ours, signals = os.pipe()
    os.set_blocking(signals, False)
    before = signal.set_wakeup_fd(signals, warn_on_full_buffer=False)
    if before != -1:
        signal.set_wakeup_fd(before)
        os.close(ours)
        os.close(signals)
        return []

    def end_later() -> None:
        while os.read(ours, 1) != bytes([signal.SIGTERM]) or not (began or is_ours()):
            pass
        end_at = time.monotonic() + _MAX_STOP_S
        # A signal that comes just before the main thread enters a call that blocks does not interrupt that call, nor
        # does one that another thread gets.
        time.sleep(_WAKE_MAIN_THREAD_S)
        while not began and is_ours() and time.monotonic() < end_at:
            signal.pthread_kill(cast("int", threading.main_thread().ident), signal.SIGTERM)
            time.sleep(_WAKE_MAIN_THREAD_S)
        time.sleep(max(0.0, end_at - time.monotonic()))
        os._exit(128 + signal.SIGTERM)

    threading.Thread(target=end_later, name="end of the process", daemon=True).start()
    return [ours, signals]


def _forget(handler: Callable[[int, FrameType | None], None], pipe: list[int]) -> None:
    """Leave a fork as it would be without a stream: its SIGTERM would be written to the pipe of the process above it.

    Args:
        handler: of SIGTERM; one of the fork's own is left.
        pipe: its ends; emptied, because a fork of the fork has none of them.
    """
    if signal.getsignal(signal.SIGTERM) is handler:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if pipe:
        before = signal.set_wakeup_fd(-1)
        if before not in pipe:
            signal.set_wakeup_fd(before)
    while pipe:
        os.close(pipe.pop())
