"""A standalone cluster of Spark's own classes: a master, and workers of one core that a test kills and starts."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from kit.waiting import eventually

if TYPE_CHECKING:
    from types import TracebackType

_SPARK = Path(str(find_spec("pyspark").origin)).parent  # type: ignore[union-attr]
_START_S = 90.0
_MASTER_URL = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = "Successfully registered with master"


class StandaloneCluster:
    """A master on the loopback, on a port of its own; it and its workers are killed when the block ends.

    Args:
        place: a folder for logs, and for what workers leave.
    """

    def __init__(self, place: Path) -> None:
        self._place = place
        self._processes: list[subprocess.Popen[bytes]] = []
        self.url = ""

    def __enter__(self) -> StandaloneCluster:  # noqa: PYI034 - typing.Self needs Python 3.11
        try:
            log = self._start("master.Master", "--port", "0")[1]
            eventually(lambda: _MASTER_URL.search(log.read_text()) is not None, _START_S)
            found = _MASTER_URL.search(log.read_text())
            assert found is not None
            self.url = found[1]
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start_worker(self) -> subprocess.Popen[bytes]:
        """Start a worker with one core, and return when the master knows it."""
        folder = self._place / f"work-{len(self._processes)}"
        process, log = self._start(
            "worker.Worker", "--port", "0", "--cores", "1", "--memory", "1g", "--work-dir", str(folder), self.url
        )
        eventually(lambda: _REGISTERED in log.read_text(), _START_S)
        return process

    def kill_worker(self, process: subprocess.Popen[bytes]) -> None:
        """Kill a worker with everything that it has started, at once: its machine is gone."""
        _kill_group(process)

    def close(self) -> None:
        """Kill everything that it has started."""
        for process in reversed(self._processes):
            _kill_group(process)

    def _start(self, name: str, *arguments: str) -> tuple[subprocess.Popen[bytes], Path]:
        log = self._place / f"{name}-{len(self._processes)}.log"
        quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        with log.open("wb") as file:
            process = subprocess.Popen(
                [str(_SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}",
                 "--host", "127.0.0.1", "--webui-port", "0", *arguments],
                stdout=file, stderr=subprocess.STDOUT, start_new_session=True,
                env={**os.environ, "SPARK_HOME": str(_SPARK), "SPARK_LOCAL_IP": "127.0.0.1",
                     "SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": quick},
            )  # fmt: skip
        self._processes.append(process)
        return process, log


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    # Executors and their Python workers are of the group of their worker.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
