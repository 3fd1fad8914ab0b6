"""Frames on a socket that sends and receives some of the bytes at a time; on a clock that the test sets."""

from __future__ import annotations

import math
from typing import Any

import pytest

from kit.fakes.clock import Clock
from pyspark_kafka._client.client.net.frame_stream import FrameStream, keeps_arriving
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka.errors import ProtocolError


class Socket:
    """Has bytes at given seconds; a wait for them takes that long, or ends with the time that is set."""

    def __init__(self, clock: Clock, arrivals: list[tuple[float, bytes]] | None = None, *, room: int = 1 << 20) -> None:
        self.clock, self.arrivals, self.room = clock, arrivals or [], room
        self.timeout_s = math.inf
        self.waits: list[float] = []
        self.taken = b""

    def setblocking(self, blocks: bool) -> None:
        assert not blocks
        self.timeout_s = 0.0

    def settimeout(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s

    def recv_into(self, view: memoryview) -> int:
        at, data = self.arrivals[0] if self.arrivals else (math.inf, b"")
        if self.timeout_s:
            self.waits.append(self.timeout_s)
        if at > self.clock.now + self.timeout_s:
            self.clock.now += self.timeout_s
            raise TimeoutError if self.timeout_s else BlockingIOError
        self.clock.now = max(self.clock.now, at)
        count = min(len(view), len(data))
        view[:count] = data[:count]
        self.arrivals[:1] = [(at, data[count:])] if count < len(data) else []
        return count

    def send(self, data: bytes) -> int:
        if not self.room:
            raise BlockingIOError
        taken = data[: self.room]
        self.room -= len(taken)
        self.taken += taken
        return len(taken)

    def sendall(self, data: bytes) -> None:
        assert self.timeout_s > 0
        self.taken += data


def stream_of(sock: Socket) -> FrameStream:
    as_a_socket: Any = sock
    return FrameStream(as_a_socket, "b:1")


@pytest.fixture
def clock() -> Clock:
    return Clock(now=0.0)


def received(sock: Socket, deadline: Deadline | None) -> bytes:
    return bytes(stream_of(sock).receive(None, deadline))


def test_frame_that_is_there_is_taken_without_a_wait(clock: Clock) -> None:
    sock = Socket(clock, [(0.0, b"\0\0\0\5first\0\0\0\6second")])
    assert received(sock, Deadline(5_000, clock=clock)) == b"first"
    assert received(sock, None) == b"second"
    assert not sock.waits


def test_body_is_waited_for_by_what_the_size_has_left_of_the_time(clock: Clock) -> None:
    sock = Socket(clock, [(3.0, b"\0\0\0\5")])
    with pytest.raises(TimeoutError):
        received(sock, Deadline(5_000, clock=clock))
    assert sock.waits == [5.0, 2.0]
    assert clock.now == 5.0


def test_part_of_a_frame_leaves_less_time_for_the_rest(clock: Clock) -> None:
    sock = Socket(clock, [(3.0, b"\0\0\0\5fi"), (4.0, b"rst")])
    assert received(sock, Deadline(5_000, clock=clock)) == b"first"
    assert sock.waits == [5.0, 2.0, 2.0]


def test_turn_ends_the_wait_and_the_next_call_continues(clock: Clock) -> None:
    sock = Socket(clock, [(0.0, b"\0\0\0\5fi"), (4.0, b"rst")])
    stream, deadline = stream_of(sock), Deadline(60_000, clock=clock)
    with pytest.raises(TimeoutError):
        stream.receive(None, deadline, 0.5)
    assert (clock.now, stream.progress, stream.arrived) == (0.5, "2 of 5 bytes had arrived", 6)
    with pytest.raises(BlockingIOError):
        stream.receive(None, None)
    assert bytes(stream.receive(None, deadline, 60.0)) == b"first"
    assert stream.arrived == 0


@pytest.mark.parametrize(("turn_s", "until_s"), [(1.0, 60.0), (60.0, 1.0)])
def test_turn_ends_however_steadily_bytes_arrive(clock: Clock, turn_s: float, until_s: float) -> None:
    sock = Socket(clock, [(0.0, b"\0\0\0\x64"), *((each / 10, b"x") for each in range(100))])
    stream, deadline = stream_of(sock), Deadline(60_000, clock=clock)
    with pytest.raises((TimeoutError, BlockingIOError)):
        stream.receive(None, deadline, turn_s, Deadline(until_s * 1000, clock=clock))
    assert clock.now == pytest.approx(1.0)
    assert 10 <= stream.arrived - 4 <= 11
    assert bytes(stream.receive(None, deadline)) == b"x" * 100


def test_bytes_keep_arriving_if_they_are_fast_enough_on_average() -> None:
    assert keeps_arriving(30_000, 30.0)
    assert not keeps_arriving(29_999, 30.0)
    assert not keeps_arriving(0, 0.0)
    assert keeps_arriving(1, 0.0)


@pytest.mark.parametrize("size", [0, 3, 1001, 2**31, 2**32 - 1])
def test_impossible_size_is_refused(clock: Clock, size: int) -> None:
    stream = stream_of(Socket(clock, [(0.0, size.to_bytes(4, "big"))]))
    stream.limit_bytes = 1000
    with pytest.raises(ProtocolError, match="FRAME_SIZE_INVALID"):
        stream.receive(None, None)


@pytest.mark.parametrize("size", [4, 1000])
def test_size_within_the_limit_is_taken(clock: Clock, size: int) -> None:
    stream = stream_of(Socket(clock, [(0.0, size.to_bytes(4, "big") + bytes(size))]))
    stream.limit_bytes = 1000
    assert len(stream.receive(None, None)) == size


@pytest.mark.parametrize("room", [0, 3, 5, 7, 100])
def test_pieces_are_sent_in_order_whatever_the_socket_takes_at_once(clock: Clock, room: int) -> None:
    sock = Socket(clock, room=room)
    stream_of(sock).send_pieces([b"first", bytearray(b"second"), memoryview(b"third")], 1.0)
    assert sock.taken == b"firstsecondthird"
    assert sock.timeout_s == 0.0
