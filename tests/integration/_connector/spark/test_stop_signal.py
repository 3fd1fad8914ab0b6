"""SIGTERM in a process that plans a query: the stream is stopped, and the process ends by the signal."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from kit.waiting import PATIENCE_S
from pyspark_kafka._connector.spark.processes import stop_signal
from pyspark_kafka._connector.spark.processes.stop_signal import stop_at_sigterm

_PROGRAM = """
import signal, socket, sys, threading
from importlib.machinery import ModuleSpec
from pyspark_kafka._connector.spark.processes import stop_signal

stop_signal._MAX_STOP_S = {longest}
# As `python -m` has it.
__spec__ = ModuleSpec("pyspark.sql.streaming.python_streaming_source_runner", None)

def stop():
    signal.raise_signal(signal.SIGTERM)
    print("stopped", flush=True)
    {stop}

stop_signal.stop_at_sigterm(stop)
print("ready", flush=True)
# As PySpark waits for its next call.
ours, theirs = socket.socketpair()
ours.recv(1)
"""


# Longer than any stop takes; and what is waited for where none ends.
_LONG_S, _SHORT_S = 60, 0.2


def program_of(stop: str = "pass", longest: float = _LONG_S, then: str = "ours.recv(1)") -> str:
    """Return a program that plans a query and does `stop` when it is stopped; meanwhile, the signal comes again."""
    return _PROGRAM.format(stop=stop, longest=longest).replace("ours.recv(1)", then)


def end_program(program: str, lines: int = 1) -> tuple[list[str], str, int]:
    """Return the lines that a program prints before SIGTERM, what it prints after it, and its status."""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        before = [process.stdout.readline() for _ in range(lines)]
        process.terminate()
        after, _ = process.communicate(timeout=60)
        return before, after, process.returncode


@pytest.mark.parametrize("stop", ["pass", "raise ValueError('it cannot stop')"])
def test_stream_is_stopped_and_the_process_ends_by_the_signal(stop: str) -> None:
    assert end_program(program_of(stop)) == (["ready\n"], "stopped\n", -signal.SIGTERM)


def test_stop_that_hangs_does_not_keep_the_process() -> None:
    program = program_of("threading.Event().wait()", _SHORT_S)
    assert end_program(program) == (["ready\n"], "stopped\n", 128 + signal.SIGTERM)


def test_call_that_does_not_come_back_does_not_keep_the_process() -> None:
    # The handler cannot run before this is computed.
    busy = "import hashlib; hashlib.pbkdf2_hmac('sha256', b'', b'', 2_000_000_000)"
    before, after, status = end_program(program_of(longest=2, then=busy))
    assert before == ["ready\n"]
    # A signal that comes before the call is handled.
    assert (after, status) in (("", 128 + signal.SIGTERM), ("stopped\n", -signal.SIGTERM))


_MISSED = """
threading.Timer(0.5, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGTERM)).start()
ours.recv(1)
"""


def test_signal_that_does_not_interrupt_the_main_thread_stops_the_stream() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", program_of(then=_MISSED)], stdout=subprocess.PIPE, text=True
    ) as process:
        # Well before the process would be ended without a stop.
        assert process.communicate(timeout=_LONG_S / 2)[0] == "ready\nstopped\n"
        assert process.returncode == -signal.SIGTERM


_FORK = """
import os
from concurrent.futures import ThreadPoolExecutor

told = signal.set_wakeup_fd(-1)
signal.set_wakeup_fd(told)

def fork():
    if (child := os.fork()) == 0:
        try:
            try:
                os.fstat(told)
            except OSError:
                assert signal.set_wakeup_fd(-1) == -1
                # A fork of the fork closes no file of its own.
                kept = os.pipe()
                if os.fork() == 0:
                    os._exit(0 if os.fstat(kept[0]) and os.fstat(kept[1]) else 1)
                assert os.wait()[1] == 0
                signal.raise_signal(signal.SIGTERM)
        finally:
            os._exit(1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)

{fork}
ours.recv(1)
"""


@pytest.mark.parametrize("fork", ["fork()", "ThreadPoolExecutor(1).submit(fork).result()"])
def test_fork_ends_by_the_signal_alone_and_stops_no_stream(fork: str) -> None:
    ended = end_program(program_of(then=_FORK.format(fork=fork)), lines=2)
    assert ended == (["ready\n", f"{-signal.SIGTERM}\n"], "stopped\n", -signal.SIGTERM)


# Each fork gets the second signal at another step of the handler of the first.
_SECOND_SIGNAL = """
import os, time
def second_at(step):
    left = [step]
    def trace(*_):
        left[0] -= 1
        if left[0] == 0:
            signal.raise_signal(signal.SIGTERM)
        return trace
    sys.settrace(trace)

children = []
for step in range(1, 41):
    if (child := os.fork()) == 0:
        stop_signal.stop_at_sigterm(lambda: None)
        second_at(step)
        signal.raise_signal(signal.SIGTERM)
        os._exit(1)
    children.append(child)
end, ended = time.monotonic() + 20, []
while children and time.monotonic() < end:
    for child in list(children):
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            children.remove(child)
            ended.append(os.waitstatus_to_exitcode(status))
    time.sleep(0.01)
for child in children:
    os.kill(child, signal.SIGKILL)
print(len(ended), set(ended), flush=True)
ours.recv(1)
"""


def test_second_signal_at_any_step_of_the_first_ends_the_process() -> None:
    before, *_ = end_program(program_of(then=_SECOND_SIGNAL), lines=2)
    assert before == ["ready\n", f"40 {{{-signal.SIGTERM}}}\n"]


def test_program_of_a_user_ends_by_the_signal_as_before() -> None:
    program = program_of().replace('"pyspark.sql', '"my_program')
    assert end_program(program) == (["ready\n"], "", -signal.SIGTERM)


def test_handler_of_another_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop_signal, "module_of_spark", lambda: "pyspark.daemon")
    monkeypatch.setattr(signal, "getsignal", lambda _: print)
    monkeypatch.setattr(signal, "signal", lambda *_: pytest.fail("it was replaced"))
    stop_at_sigterm(lambda: None)


_LATER_HANDLER = """
came = []
former = signal.signal(signal.SIGTERM, lambda number, _: came.append(number))
signal.raise_signal(signal.SIGTERM)
# Longer than the process has when the signal is not handled by another.
threading.Event().wait(4)
signal.signal(signal.SIGTERM, former)
print(came == [signal.SIGTERM], flush=True)
ours.recv(1)
"""


def test_process_goes_on_where_a_later_handler_takes_the_signal() -> None:
    ended = end_program(program_of(longest=2, then=_LATER_HANDLER), lines=2)
    assert ended == (["ready\n", "True\n"], "stopped\n", -signal.SIGTERM)


def test_other_threads_handle_no_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[object] = []
    monkeypatch.setattr(stop_signal, "module_of_spark", lambda: "pyspark.daemon")
    monkeypatch.setattr(signal, "signal", lambda *args: called.append(args))
    thread = threading.Thread(target=stop_at_sigterm, args=[lambda: None])
    thread.start()
    thread.join(timeout=PATIENCE_S)
    assert not thread.is_alive()
    assert called == []
