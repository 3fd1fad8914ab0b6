"""The program between this process and a broker, so that the broker never outlives it.

It is the broker's parent, in a session of its own: the terminal's Ctrl-C does not reach the broker before the
application has finished with it, and signals go to a process that cannot have been replaced by another one of the same
number. It takes one JSON request a line on standard input and responds to each with one line, which has the `id` of the
request. When standard input ends, or its own parent is gone, for whatever reason, it stops the broker, removes the
directory it was given, and ends.

Run as a script, isolated, with the standard library only: it must start in milliseconds and imports nothing of this
package. Linux and macOS.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from typing import Any

_PARENT_CHECK_S = 1.0
_GRACE_S = 10.0
_PR_SET_PDEATHSIG = 1


class _Terminated(Exception):  # noqa: N818 - not an error: how a signal leaves the loop
    pass


def _die_with_supervisor() -> None:
    # Runs in the child between fork and exec. Safe here, and only here: the flag follows the *thread* that forked, and
    # this program has one thread. It covers the case where the supervisor itself is killed.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class _Supervisor:
    def __init__(self, *, graceful: bool) -> None:
        self._graceful = graceful
        self._process: subprocess.Popen[bytes] | None = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        action = request["do"]
        if action == "start":
            return self._start(request["command"], request["log"])
        process = self._process
        code = None if process is None else process.poll()
        if action == "signal" and process is not None and code is None:
            process.send_signal(request["number"])
            if request["number"] == signal.SIGSTOP and hasattr(os, "waitid"):
                # Threads stop one by one: until the last has, some of them still respond.
                os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        return {"running": process is not None and code is None, "exit": code}

    def _start(self, command: list[str], log: str) -> dict[str, Any]:
        on_linux = sys.platform.startswith("linux")
        try:
            with open(log, "ab") as output:  # noqa: PTH123 - pathlib would be the slowest import of this program
                self._process = subprocess.Popen(  # noqa: S603 - the command of the package's own
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    preexec_fn=_die_with_supervisor if on_linux else None,  # noqa: PLW1509 - one thread only
                )
        except OSError as error:
            return {"error": str(error)}
        return {"pid": self._process.pid}

    def end(self) -> None:
        process = self._process
        if process is None or process.poll() is not None:
            return
        if self._graceful:
            # A paused broker would not see the request to stop.
            process.send_signal(signal.SIGCONT)
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE_S)
        process.kill()
        process.wait()


def _serve(supervisor: _Supervisor) -> None:
    parent = os.getppid()
    pending = b""
    while True:
        readable, _, _ = select.select([0], [], [], _PARENT_CHECK_S)
        # The pipe may be held open by a child that the parent forked; the parent's number still changes.
        if os.getppid() != parent:
            return
        if not readable:
            continue
        received = os.read(0, 1 << 16)
        if not received:
            return
        *lines, pending = (pending + received).split(b"\n")
        for line in lines:
            request = json.loads(line)
            reply = {**supervisor.answer(request), "id": request["id"]}
            try:
                os.write(1, json.dumps(reply).encode() + b"\n")
            except BrokenPipeError:
                return


def main(directory: str, ending: str) -> None:
    """Serve requests until standard input ends; then end the broker, remove the directory, and end."""

    def leave(number: int, _frame: object) -> None:
        raise _Terminated(number)

    signal.signal(signal.SIGTERM, leave)
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    supervisor = _Supervisor(graceful=ending == "graceful")
    try:
        with contextlib.suppress(_Terminated):
            _serve(supervisor)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        supervisor.end()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
