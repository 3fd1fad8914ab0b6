"""Driver and tasks on real sockets: who is let in, who is lost, what arrives."""

from __future__ import annotations

import errno
import queue
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from pyspark_kafka.continuous.channel import driver_side, task_side
from pyspark_kafka.continuous.channel.driver_side import TaskConnections, _Peer
from pyspark_kafka.continuous.channel.file_limit import file_limit
from pyspark_kafka.continuous.channel.frames import (
    NONCE_BYTES,
    Direction,
    FrameWriter,
    connection_key,
    new_key,
)
from pyspark_kafka.continuous.channel.task_side import DriverConnection
from pyspark_kafka.continuous.epochs.coordinator import LaneReport
from pyspark_kafka.continuous.epochs.messages import End, Failed, Hello, Moved, Reports, Started, Stop, encode
from pyspark_kafka.errors import TransportError

_LOOPBACK = "127.0.0.1"
_SECONDS = 20


class Driver:
    """The driver's end, with what it was told."""

    def __init__(self, lost_s: float = driver_side.LOST_SECONDS) -> None:
        self.key = new_key()
        self.said: queue.Queue[Any] = queue.Queue()
        self.lost: queue.Queue[tuple[int, str]] = queue.Queue()
        self.connections = TaskConnections(
            self.key,
            _LOOPBACK,
            lambda task, message: self.said.put((task, message)),
            lambda *what: self.lost.put(what),
            lost_s=lost_s,
        )
        self.address = _LOOPBACK, self.connections.port

    def task(self, number: int, lanes: int = 1) -> DriverConnection:
        task = DriverConnection(self.address, self.key, number, lanes)
        assert self.said.get(timeout=_SECONDS) == (number, Hello(number))
        return task


@pytest.fixture
def driver() -> Iterator[Driver]:
    it = Driver()
    yield it
    it.connections.close()


def stranger(driver: Driver) -> tuple[socket.socket, bytes]:
    """Connect without the key; return the driver's nonce too."""
    connection = socket.create_connection(driver.address, _SECONDS)
    nonce = b""
    while len(nonce) < NONCE_BYTES:
        nonce += connection.recv(NONCE_BYTES - len(nonce))
    return connection, nonce


def wait_for_its_end(connection: socket.socket) -> None:
    """Wait until the driver has ended a connection; what it says before does not count."""
    with connection, suppress(ConnectionError):
        connection.settimeout(_SECONDS)
        while connection.recv(4096):
            pass


def test_messages_arrive_in_order_both_ways(driver: Driver) -> None:
    tasks = [driver.task(number) for number in range(3)]
    for number, task in enumerate(tasks):
        task.send_message(Started(number))
        task.send_message(Moved(number, 7))
    told = [driver.said.get(timeout=_SECONDS) for _ in range(6)]
    for number in range(3):
        assert [message for task, message in told if task == number] == [Started(number), Moved(number, 7)]
    driver.connections.broadcast(End(6, 0, 4_400))
    driver.connections.broadcast(End(7, 1))
    driver.connections.broadcast(Stop())
    for task in tasks:
        task.wait_until_stopped()
        assert (task.ended_epoch, task.last_epoch, task.epoch_s, task.stopped) == (7, 7, 4.4, True)
        task.close()


def test_last_message_of_a_task_that_closes_arrives(driver: Driver) -> None:
    task = driver.task(0)
    # Bytes that the task has not read yet must not cost what it has sent.
    for epoch in range(200):
        driver.connections.broadcast(End(epoch))
    task.send_message(Failed(0, "boom", "x" * 50_000))
    task.close()
    assert driver.said.get(timeout=_SECONDS) == (0, Failed(0, "boom", "x" * 50_000))
    assert driver.lost.get(timeout=_SECONDS)[0] == 0


@pytest.mark.parametrize("is_failure", [True, False])
def test_report_that_waits_for_slower_lanes_arrives_before_the_task_ends(driver: Driver, is_failure: bool) -> None:
    task = driver.task(0, lanes=2)
    report = LaneReport(0, 7, "{}", "{}")
    task.send_message(report)
    if is_failure:
        task.send_message(Failed(1, "boom", "the traceback"))
    task.close()
    told = [driver.said.get(timeout=_SECONDS) for _ in range(1 + is_failure)]
    assert told == [(0, Reports((report,))), (0, Failed(1, "boom", "the traceback"))][: 1 + is_failure]


def test_report_that_waits_for_slower_lanes_arrives_with_the_next_sign_of_life(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_side, "ALIVE_SECONDS", 0.05)
    task = driver.task(0, lanes=2)
    report = LaneReport(0, 7, "{}", "{}")
    task.send_message(report)
    assert driver.said.get(timeout=_SECONDS) == (0, Reports((report,)))
    task.close()


def test_task_stops_if_its_driver_is_gone(driver: Driver) -> None:
    task = driver.task(0)
    driver.connections.close()
    task.wait_until_stopped()
    task.send_message(Moved(0, 1))
    task.close()


def test_task_without_a_driver_says_where_it_looked() -> None:
    with socket.create_server((_LOOPBACK, 0)) as taken:
        address = _LOOPBACK, taken.getsockname()[1]
    with pytest.raises(TransportError, match=f"Task 4 .* cannot reach its driver at {_LOOPBACK}:{address[1]}"):
        DriverConnection(address, new_key(), 4)


@pytest.mark.parametrize("key", ["another run", "no key"])
def test_stranger_is_refused_and_the_run_goes_on(driver: Driver, key: str) -> None:
    task = driver.task(0)
    connection, nonce = stranger(driver)
    if key == "another run":
        wrong = connection_key(new_key(), nonce, b"t" * NONCE_BYTES)
        connection.sendall(b"t" * NONCE_BYTES + FrameWriter(wrong, Direction.TO_DRIVER).frame(encode(Hello(1))))
    else:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 4)
    wait_for_its_end(connection)
    task.send_message(Started(0))
    assert driver.said.get(timeout=_SECONDS) == (0, Started(0))
    assert driver.lost.empty()
    task.close()


def test_bytes_of_a_task_are_worth_nothing_on_another_connection(driver: Driver) -> None:
    connection, nonce = stranger(driver)
    writer = FrameWriter(connection_key(driver.key, nonce, b"t" * NONCE_BYTES), Direction.TO_DRIVER)
    said = b"t" * NONCE_BYTES + writer.frame(encode(Hello(1)))
    with connection:
        connection.sendall(said)
        assert driver.said.get(timeout=_SECONDS) == (1, Hello(1))
    assert driver.lost.get(timeout=_SECONDS)[0] == 1
    again, _ = stranger(driver)
    again.sendall(said)
    wait_for_its_end(again)
    assert driver.said.empty()


def test_task_gives_up_on_somebody_who_greets_byte_by_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_side, "_CONNECT_SECONDS", 0.3)
    ended, greeted = threading.Event(), threading.Event()

    def greet(listener: socket.socket) -> None:
        accepted, _ = listener.accept()
        with accepted, suppress(OSError):
            for _ in range(NONCE_BYTES - 1):
                accepted.sendall(b"d")
                if ended.wait(0.2):
                    return
            greeted.set()

    with socket.create_server((_LOOPBACK, 0)) as listener, ThreadPoolExecutor(1) as pool:
        greeting = pool.submit(greet, listener)
        with pytest.raises(TransportError, match="cannot reach its driver"):
            DriverConnection(listener.getsockname()[:2], new_key(), 0)
        # It did not wait until all bytes but one had come.
        assert not greeted.is_set()
        ended.set()
        greeting.result(_SECONDS)


def test_second_task_with_the_same_number_is_refused(driver: Driver) -> None:
    first = driver.task(0)
    connection, nonce = stranger(driver)
    key = connection_key(driver.key, nonce, b"t" * NONCE_BYTES)
    connection.sendall(b"t" * NONCE_BYTES + FrameWriter(key, Direction.TO_DRIVER).frame(encode(Hello(0))))
    wait_for_its_end(connection)
    first.send_message(Started(0))
    assert driver.said.get(timeout=_SECONDS) == (0, Started(0))
    first.close()


def test_task_that_is_started_again_is_sent_away_before_its_lanes_begin(driver: Driver) -> None:
    first = driver.task(0)
    assert first.wait_until_let_in()
    beside = DriverConnection(driver.address, driver.key, 0)
    assert not beside.wait_until_let_in()
    # Its own end is seen by the driver before another one comes.
    first.close()
    assert driver.lost.get(timeout=_SECONDS)[0] == 0
    after = DriverConnection(driver.address, driver.key, 0)
    assert not after.wait_until_let_in()
    for task in (beside, after):
        task.close()


def test_task_that_says_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_side, "ALIVE_SECONDS", 0.05)
    driver = Driver(lost_s=0.2)
    connection, nonce = stranger(driver)
    key = connection_key(driver.key, nonce, b"t" * NONCE_BYTES)
    connection.sendall(b"t" * NONCE_BYTES + FrameWriter(key, Direction.TO_DRIVER).frame(encode(Hello(2, 4711))))
    task, reason = driver.lost.get(timeout=_SECONDS)
    assert task == 2
    # Its connection is open, and its machine confirms what it gets.
    assert reason.startswith("it was silent for 0 s, though its machine answers and its process lives: a func")
    assert "(process 4711 at 127.0.0.1:" in reason
    connection.close()
    driver.connections.close()


def test_driver_that_was_held_up_reads_before_it_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    now, armed = time.monotonic, threading.Event()
    ahead = [0.0]
    monkeypatch.setattr(driver_side, "time", SimpleNamespace(monotonic=lambda: now() + ahead[0]))
    monkeypatch.setattr(driver_side, "ALIVE_SECONDS", 0.05)
    driver = Driver()
    task = driver.task(0)
    selector: Any = driver.connections._selector
    select = selector.select

    def held_up(timeout: float) -> Any:
        if not armed.is_set():
            return select(timeout)
        # Nothing had come; then the program holds the interpreter, and the task says something meanwhile.
        armed.clear()
        task.send_message(Started(0))
        ahead[0] = 29.0
        return []

    monkeypatch.setattr(selector, "select", held_up)
    armed.set()
    assert driver.said.get(timeout=_SECONDS) == (0, Started(0))
    assert driver.lost.empty(), "the task was well"
    task.close()
    _, reason = driver.lost.get(timeout=_SECONDS)
    assert "before, this program itself was silent for 29 s, as it held the interpreter" in reason
    driver.connections.close()


def test_driver_that_has_too_many_files_open_says_so_once(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(driver_side, "ALIVE_SECONDS", 0.05)
    refused = threading.Semaphore(0)
    accept, left = driver.connections._listener.accept, iter(range(3))

    class Listener:
        def accept(self) -> Any:
            if next(left, None) is None:
                return accept()
            refused.release()
            raise OSError(errno.EMFILE, "Too many open files")

    connections: Any = driver.connections
    for _ in range(3):
        connections._can_accept = True
        listener, connections._listener = connections._listener, Listener()
        connections._accept()
        connections._listener = listener
    assert refused.acquire(timeout=_SECONDS)
    said = [record for record in caplog.records if record.levelname == "WARNING"]
    assert len(said) == 1
    assert f"may have {file_limit()} files open" in said[0].getMessage()


def test_connection_that_is_reset_while_it_is_accepted_ends_nothing_else(driver: Driver) -> None:
    ours, theirs = socket.socketpair()

    class Reset:
        """A connection of which a system other than Linux knows that it was reset."""

        def __getattr__(self, name: str) -> Any:
            return getattr(ours, name)

        def setsockopt(self, *_: Any) -> None:
            raise OSError(errno.EINVAL, "Invalid argument")

    class Listener:
        def __init__(self) -> None:
            self.left = [Reset()]

        def accept(self) -> Any:
            if not self.left:
                raise BlockingIOError
            return self.left.pop(), ("127.0.0.1", 1)

    connections: Any = driver.connections
    listener, connections._listener = connections._listener, Listener()
    try:
        connections._accept()
    finally:
        connections._listener = listener
        theirs.close()
    assert ours.fileno() == -1
    test_messages_arrive_in_order_both_ways(driver)


def test_process_that_is_forked_gives_up_the_port() -> None:
    connections = TaskConnections(new_key(), _LOOPBACK, lambda *_: None, lambda *_: None)
    port = connections.port
    assert connections._listener in driver_side._LISTENERS
    connections.close()
    held = socket.create_server((_LOOPBACK, port))
    driver_side._LISTENERS.add(held)
    driver_side._close_listeners()
    socket.create_server((_LOOPBACK, port)).close()


def test_stranger_that_does_not_greet_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_side, "ALIVE_SECONDS", 0.05)
    monkeypatch.setattr(driver_side, "_GREETING_SECONDS", 0.2)
    driver = Driver()
    connection, _ = stranger(driver)
    wait_for_its_end(connection)
    driver.connections.close()


def test_task_that_comes_after_the_end_is_told_to_stop(driver: Driver) -> None:
    early = driver.task(0)
    driver.connections.stop_tasks()
    late = driver.task(1)
    for task in (early, late):
        assert task._stopped.wait(_SECONDS)
        task.close()


def test_task_is_let_in_when_strangers_have_gone(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_side, "_MAX_UNAUTHENTICATED", 2)
    strangers = [stranger(driver)[0] for _ in range(2)]
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(driver.task, 5)
        assert not wait([coming], 0.5).done
        for each in strangers:
            each.close()
        coming.result(_SECONDS).close()


def test_task_is_let_in_while_strangers_that_do_not_greet_stay(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_side, "_MAX_UNAUTHENTICATED", 2)
    monkeypatch.setattr(driver_side, "_YIELD_SECONDS", 0.05)
    strangers = [stranger(driver)[0] for _ in range(2)]
    driver.task(5).close()
    # The oldest; the other one has found room again.
    wait_for_its_end(strangers[0])
    strangers[1].close()


def test_strangers_of_one_address_take_no_place_from_tasks_of_another(driver: Driver) -> None:
    peers = [_Peer(None, f"10.0.0.{host}:{port}", since, b"", 0.0) for host, port, since in ((1, 7, 3.0), (1, 8, 2.0))]  # type: ignore[arg-type]
    other = _Peer(None, "10.0.0.2:7", 1.0, b"", 0.0)  # type: ignore[arg-type]
    driver.connections.close()
    driver.connections._peers = {*peers, other}
    assert driver.connections._oldest_stranger() is peers[1]


def test_many_strangers_are_one_line_of_the_log(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(6):
        if number == 5:
            monkeypatch.setattr(driver_side, "_TOLD_EVERY_SECONDS", 0.0)
        connection, _ = stranger(driver)
        connection.sendall(b"x" * 100)
        wait_for_its_end(connection)
    first, last = [record.getMessage() for record in caplog.records]
    assert "is not of this query, and was ended: " in first
    assert first.endswith(".")
    assert last.endswith(" So were 4 others since the last line about them.")


def test_many_tasks_come_at_the_same_time(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_side, "_MAX_UNAUTHENTICATED", 8)
    together = threading.Barrier(150)

    def come(number: int) -> DriverConnection:
        together.wait(_SECONDS)
        return DriverConnection(driver.address, driver.key, number)

    with ThreadPoolExecutor(150) as pool:
        tasks = list(pool.map(come, range(150)))
        assert {driver.said.get(timeout=_SECONDS) for _ in tasks} == {(number, Hello(number)) for number in range(150)}
        for _ in pool.map(DriverConnection.close, tasks):
            pass


def test_task_waits_for_a_driver_that_reads_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_side, "ALIVE_SECONDS", 0.05)
    with socket.create_server((_LOOPBACK, 0)) as listener, ThreadPoolExecutor(1) as pool:
        making = pool.submit(DriverConnection, listener.getsockname()[:2], new_key(), 0)
        busy, _ = listener.accept()
        with busy:
            busy.sendall(b"d" * NONCE_BYTES)
            task = making.result(_SECONDS)
            report = LaneReport(0, 0, "p" * 15_000_000, "{}")
            sending = pool.submit(task.send_message, report)
            # Longer than the task waits before it says that it is alive.
            assert not wait([sending], 0.5).done
            received = 0
            busy.settimeout(_SECONDS)
            while received < 15_000_000:
                received += len(busy.recv(1 << 20))
            sending.result(_SECONDS)
            assert not task.stopped
        task.close()


def connections_at(host: str, port: int = 0) -> TaskConnections:
    return TaskConnections(new_key(), host, lambda *_: None, lambda *_: None, port)


def test_driver_listens_on_all_addresses_if_the_one_is_of_a_gateway(caplog: pytest.LogCaptureFixture) -> None:
    # Of a block that documents use: no machine has it.
    connections = connections_at("203.0.113.77")
    socket.create_connection((_LOOPBACK, connections.port), _SECONDS).close()
    connections.close()
    assert "listens on all addresses of this machine: 203.0.113.77" in caplog.text


def test_driver_listens_on_no_other_address_if_the_one_is_its_own(driver: Driver) -> None:
    with pytest.raises(OSError, match=r".*"):
        socket.create_connection(("127.0.0.2", driver.address[1]), _SECONDS)


def test_driver_listens_at_the_port_that_is_named() -> None:
    with socket.create_server((_LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(TransportError, match=f"cannot listen at {_LOOPBACK}, port {port}"):
            connections_at(_LOOPBACK, port)
    connections = connections_at(_LOOPBACK, port)
    assert connections.port == port
    connections.close()
