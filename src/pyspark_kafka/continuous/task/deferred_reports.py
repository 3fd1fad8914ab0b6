"""Reports that leave when the state of their epoch is written; the lane reads on meanwhile."""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import Future

    from pyspark_kafka.continuous.channel.task_side import DriverConnection
    from pyspark_kafka.continuous.epochs.coordinator import LaneReport
    from pyspark_kafka.continuous.state.version_files import PendingVersions


class DeferredReports:
    """Sends the reports of one lane in their order, each after the files that it names are written.

    Runs on: executor, with a thread of its own. One epoch is written while the next one runs; `send_report` waits for
    the one before. If files cannot be written, every lane of the task ends, and the next call raises the error.

    Args:
        driver: the connection to the driver.
    """

    def __init__(self, driver: DriverConnection) -> None:
        self._driver = driver
        self._pool = ThreadPoolExecutor(1, "continuous-state")
        self._last: Future[None] | None = None

    def send_report(self, report: LaneReport, pending: PendingVersions) -> None:
        """Have files written, and the report sent then.

        Raises:
            CheckpointError: the files of an earlier epoch could not be written.
        """
        self.wait()
        self._last = self._pool.submit(self._write_and_send, report, pending)

    def wait(self) -> None:
        """Wait until the last report is sent.

        Raises:
            CheckpointError: the files of an epoch could not be written.
        """
        if self._last is not None:
            self._last.result()

    def close(self) -> None:
        """End the thread; what it writes is written first."""
        self._pool.shutdown()

    def _write_and_send(self, report: LaneReport, pending: PendingVersions) -> None:
        try:
            began = time.monotonic()
            pending.write()
            written_ms = math.ceil((time.monotonic() - began) * 1000)
            self._driver.send_message(replace(report, state=pending.text, late_state_ms=written_ms))
        except BaseException:
            # The lane may wait for rows, or for the driver.
            self._driver.stop()
            raise
