"""A task's end of the channel: what the driver has said so far, as values that lanes look at between batches."""

from __future__ import annotations

import os
import selectors
import socket
import threading
import time
from contextlib import suppress

from pyspark_kafka.continuous.channel.driver_side import ALIVE_SECONDS, LOST_SECONDS
from pyspark_kafka.continuous.channel.frames import (
    NONCE_BYTES,
    BadFrameError,
    Direction,
    FrameReader,
    FrameWriter,
    connection_key,
    new_nonce,
)
from pyspark_kafka.continuous.channel.task_reports import TaskReports
from pyspark_kafka.continuous.epochs.coordinator import LaneReport
from pyspark_kafka.continuous.epochs.messages import (
    Alive,
    BadMessageError,
    End,
    Failed,
    Go,
    Hello,
    Message,
    Stop,
    decode,
    encode,
)
from pyspark_kafka.errors import TransportError

# Longer than a driver waits for those who do not greet, and let others wait.
_CONNECT_SECONDS = 15.0
_SEND_SECONDS = 10.0
_CLOSE_SECONDS = 5.0
_READ_BYTES = 64 * 1024


class DriverConnection:
    """The connection of one task to its driver.

    Runs on: executor; a thread of its own reads and says that the task is alive; any thread sends.

    Attributes:
        ended_epoch: the last epoch that the driver has told lanes to end; -1 for none.
        last_epoch: the epoch with which lanes end; None while the driver has named none.
        epoch_s: the length of an epoch, for lanes that commit by their own clocks; None if the driver has named none.

    Args:
        address: host and port of the driver.
        key: of the run.
        task: the number of the task.
        lanes: how many lanes it has.
        lost_s: after how many seconds of silence the driver is lost.

    Raises:
        TransportError: the driver cannot be reached from here.
    """

    def __init__(
        self, address: tuple[str, int], key: bytes, task: int, lanes: int = 1, lost_s: float = LOST_SECONDS
    ) -> None:
        self._lost_s = lost_s
        self._reports = TaskReports(lanes, self._send)
        self.ended_epoch = -1
        self.last_epoch: int | None = None
        self.epoch_s: float | None = None
        self._stopped = threading.Event()
        self._go = False
        # Notified when lanes are to read, when an epoch is to end, and when lanes are to end.
        self._news = threading.Condition()
        self._heard = threading.Event()
        self._lock = threading.Lock()
        try:
            self._socket, driver_nonce = _connected(address)
        except OSError as error:
            raise TransportError(
                f"Task {task} of the continuous query cannot reach its driver at {address[0]}:{address[1]}: {error}. "
                "Nothing was read.",
                condition="CONTINUOUS_DRIVER_UNREACHABLE",
                retriable=True,
                hint="Let executors connect to the machine of the driver; option coordinatorHost names the address "
                "that they use.",
                parameters={"host": address[0], "port": address[1]},
            ) from error
        nonce = new_nonce()
        connection = connection_key(key, driver_nonce, nonce)
        self._reader = FrameReader(connection, Direction.TO_TASK)
        self._writer = FrameWriter(connection, Direction.TO_DRIVER)
        # Sent with the first frame.
        self._first = nonce
        self.send_message(Hello(task, os.getpid()))
        self._thread = threading.Thread(target=self._run, name="continuous-driver", daemon=True)
        self._thread.start()

    @property
    def stopped(self) -> bool:
        """Return whether lanes are to end: the driver said so or is gone, or another lane of the task has failed."""
        return self._stopped.is_set()

    def send_message(self, message: Message | LaneReport) -> None:
        """Send a message. If the driver is gone, `stopped` becomes True and nothing is sent.

        The report of a lane waits for the reports of the other lanes of the task, for some seconds at most.

        Raises:
            ValueError: it is too long for a message.
        """
        if isinstance(message, LaneReport):
            self._reports.add_lane_report(message)
            return
        if isinstance(message, Failed):
            # The driver takes nothing after it but what is to be aborted.
            self._reports.flush()
        self._send(message)

    def _send(self, message: Message) -> None:
        payload = encode(message)
        with self._lock:
            try:
                self._socket.sendall(self._first + self._writer.frame(payload))
                self._first = b""
            except OSError:
                self.stop()

    def stop(self) -> None:
        """Have every lane of this task end."""
        self._stopped.set()
        with self._news:
            self._news.notify_all()

    def wait_for_end_of(self, epoch: int, seconds: float | None = None) -> None:
        """Wait until the driver has told lanes to end an epoch, or they are to end altogether, or the time is over."""
        with self._news:
            self._news.wait_for(lambda: self.ended_epoch >= epoch or self.stopped, seconds)

    def wait_until_let_in(self) -> bool:
        """Wait for the first word of the driver; return whether lanes may start.

        Without it a task that Spark has started a second time, and that the driver sends away, would write beside the
        first attempt.
        """
        self._heard.wait()
        return not self.stopped

    def wait_for_go(self) -> None:
        """Wait until every lane of the run has started, or lanes are to end."""
        with self._news:
            self._news.wait_for(lambda: self._go or self.stopped)

    def wait_until_stopped(self) -> None:
        """Wait until the driver says that it has what was sent, or is gone."""
        self._stopped.wait()

    def close(self) -> None:
        """End the connection. What was sent arrives, as far as the driver is there."""
        self._reports.flush()
        self.stop()
        # Not close(): with bytes that were not read, it would reset the connection, and what was sent would be lost.
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        self._thread.join(_CLOSE_SECONDS)
        self._socket.close()

    def _run(self) -> None:
        heard = time.monotonic()
        said = heard
        # Not by the socket's timeout: that is one for those who send as well.
        selector = selectors.DefaultSelector()
        selector.register(self._socket, selectors.EVENT_READ)
        try:
            while time.monotonic() - heard < self._lost_s:
                if selector.select(ALIVE_SECONDS):
                    data = self._socket.recv(_READ_BYTES)
                    if not data:
                        return
                    heard = time.monotonic()
                    for payload in self._reader.feed(data):
                        self._take(decode(payload))
                if time.monotonic() - said >= ALIVE_SECONDS:
                    said = time.monotonic()
                    self._reports.flush()
                    self._send(Alive())
        except (OSError, BadFrameError, BadMessageError):
            # The same as an end of the connection: lanes end, and the driver sees that the task is gone.
            return
        finally:
            selector.close()
            self.stop()
            self._heard.set()

    def _take(self, message: Message) -> None:
        match message:
            case End():
                # In this order: lanes read the second attribute after the first.
                if message.last:
                    self.last_epoch = message.epoch
                if message.lanes_ms:
                    self.epoch_s = message.lanes_ms / 1000
                with self._news:
                    self.ended_epoch = message.epoch
                    self._news.notify_all()
            case Go():
                with self._news:
                    self._go = True
                    self._news.notify_all()
            case Stop():
                self.stop()
        self._heard.set()


def _connected(address: tuple[str, int]) -> tuple[socket.socket, bytes]:
    """Return a connection to a driver, and the number that it has drawn.

    Raises:
        OSError: nobody listens there, or does not greet in time.
    """
    connection = socket.create_connection(address, _CONNECT_SECONDS)
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        nonce = _read_nonce(connection)
    except BaseException:
        connection.close()
        raise
    connection.settimeout(_SEND_SECONDS)
    return connection, nonce


def _read_nonce(connection: socket.socket) -> bytes:
    # Whoever listens there has not shown yet that it is the driver: all bytes in time, not each of them.
    until = time.monotonic() + _CONNECT_SECONDS
    data = b""
    while len(data) < NONCE_BYTES:
        connection.settimeout(max(0.001, until - time.monotonic()))
        part = connection.recv(NONCE_BYTES - len(data))
        if not part:
            raise ConnectionError("the connection ended during the greeting")
        data += part
    return data
