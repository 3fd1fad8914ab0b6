"""A process that dies with this one: the near end of `_supervisor.py`. Not about Kafka."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark_kafka.errors import SetupError

if TYPE_CHECKING:
    import signal
    from collections.abc import Sequence

_POLL_S = 0.02
_CLOSE_TIMEOUT_S = 20


class SupervisedProcess:
    """Starts one program at a time, and ends it when closed, or when this process ends in whatever way.

    Also after `kill -9` of this process nothing is left: neither the program nor the directory. Threads may share it.
    """

    def __init__(self, directory: Path, *, graceful: bool) -> None:
        """Start the supervisor.

        Args:
            directory: removed at the end.
            graceful: at the end request the program's stop, and kill it only when it takes too long.
        """
        self._lock = threading.Lock()
        self._asked = 0
        self._owner = os.getpid()
        self._directory = directory
        self._supervisor = subprocess.Popen(  # noqa: S603 - this interpreter and a file of this package
            [
                sys.executable,
                "-I",
                "-S",
                str(Path(__file__).with_name("_supervisor.py")),
                str(directory),
                "graceful" if graceful else "at-once",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Out of the terminal's process group: Ctrl-C is for the application, which then closes this.
            start_new_session=True,
        )

    def start(self, command: Sequence[str], log: Path) -> int:
        """Start the program with its output appended to `log`, and return its process id.

        Raises:
            SetupError: when it cannot be started.
        """
        reply = self._ask({"do": "start", "command": list(command), "log": str(log)})
        if "error" in reply:
            raise SetupError(
                f"{command[0]} cannot be started: {reply['error']}.",
                condition="PROCESS_NOT_STARTED",
                hint="Check that the program exists and is executable.",
                parameters={"command": command[0]},
            )
        return int(reply["pid"])

    def exit_code(self) -> int | None:
        """Return the program's exit code, negative for a signal; None while it runs or before it was started."""
        code = self._ask({"do": "poll"})["exit"]
        return None if code is None else int(code)

    @property
    def running(self) -> bool:
        """Whether the program was started and has not ended."""
        return bool(self._ask({"do": "poll"})["running"])

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal; False when the program does not run, and then nothing is sent."""
        return bool(self._ask({"do": "signal", "number": int(number)})["running"])

    def wait(self, timeout_s: float) -> bool:
        """Wait until the program does not run; False when it still does after `timeout_s`."""
        end = time.monotonic() + timeout_s
        while self.running:
            if time.monotonic() >= end:
                return False
            time.sleep(_POLL_S)
        return True

    def close(self) -> None:
        """End the program and the supervisor, and remove the directory. May be called again, and does nothing then.

        In a forked child it does nothing: the program is not the child's.
        """
        if os.getpid() != self._owner:
            return
        with self._lock:
            supervisor = self._supervisor
            if supervisor.stdin is not None and not supervisor.stdin.closed:
                # What could not be written is of no interest to a supervisor that is gone.
                with contextlib.suppress(BrokenPipeError):
                    supervisor.stdin.close()
            try:
                supervisor.wait(_CLOSE_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                supervisor.kill()
                supervisor.wait()
            if supervisor.stdout is not None:
                supervisor.stdout.close()
            # Left only by a supervisor that was killed.
            shutil.rmtree(self._directory, ignore_errors=True)

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        supervisor = self._supervisor
        if supervisor.stdin is None or supervisor.stdout is None:  # pragma: no cover - both are pipes
            raise SetupError("The supervisor has no pipes.", condition="SUPERVISOR_LOST")
        with self._lock:
            self._asked += 1
            try:
                supervisor.stdin.write(json.dumps({**request, "id": self._asked}).encode() + b"\n")
                supervisor.stdin.flush()
                # An interrupt may have left the replies to requests before this one.
                while line := supervisor.stdout.readline():
                    reply: dict[str, Any] = json.loads(line)
                    if reply["id"] == self._asked:
                        return reply
            except (OSError, ValueError) as error:
                raise _lost() from error
        raise _lost()


def _lost() -> SetupError:
    return SetupError(
        "The supervisor of the embedded broker is gone, and the broker with it.",
        condition="SUPERVISOR_LOST",
        hint="Start a new EmbeddedKafka.",
    )
