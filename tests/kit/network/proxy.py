"""TCP proxies that clients reach brokers through, each of which can misbehave as a bad network does."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from kit.network.changes import Address, readdressed
from kit.network.frames import Conversation
from kit.network.wire import CLEAN, Change, Wire
from pyspark_kafka.testing.broker_config import HOST

_CHUNK_BYTES = 1 << 16
# What brokers are called in turn. The second name has an address of IPv6, too, at which nobody listens.
_NAMES = (HOST, "localhost")
_POLL_S = 0.02
# With SO_LINGER on and 0 s, closing sends RST.
_LINGER_ZERO = struct.pack("ii", 1, 0)
_LISTEN_WITHIN_S = 10.0
_RUN_WITHIN_S = 120.0
_END_WITHIN_S = 5.0
# A task that was just made, and what it calls next, have run after as many turns of the loop.
_TURNS = 3
# Small pieces are for what a client does with them; without a pause, more than this of it would only take CPU time.
_DRIPPED_BYTES = 4096
# A line with a rate carries bytes in pieces of this time, so that they arrive steadily.
_RATE_STEP_S = 0.02
# What a connection holds back at most per direction: beyond it, the sender is not read from.
_HELD_CHUNKS = 32


class Proxy:
    """One listening port, one broker behind it. Made by `Proxies`.

    Attributes:
        port: where it listens on the loopback.
        accepted: the number of connections that were made to it.
        answers: the number of responses by the name of the request; only of a proxy that reads frames.
        clients: the number of requests by their name and client id; likewise.
    """

    def __init__(self, owner: Proxies, seed: int, name: str, upstream: Address, *, reads_frames: bool) -> None:
        self._owner = owner
        self._name = name
        self._rng = random.Random(seed)
        self._upstream = upstream
        self._reads_frames = reads_frames
        # Changes that stay with every wire, before its own.
        self._own_changes: tuple[Change, ...] = ()
        self._wire = CLEAN
        # Cleared while the wire is a black hole.
        self._open = asyncio.Event()
        self._open.set()
        self._server: asyncio.Server | None = None
        self._connections: set[_Connection] = set()
        # One of each direction, from brokers or not.
        self._lines = {True: _Line(), False: _Line()}
        self.accepted = 0
        self.answers: Counter[str] = Counter()
        self.clients: Counter[tuple[str, str]] = Counter()
        with socket.socket() as free:
            free.bind((HOST, 0))
            self.port = int(free.getsockname()[1])

    @property
    def address(self) -> str:
        """What brokers advertise and clients connect to."""
        return f"{self._name}:{self.port}"

    @property
    def wire(self) -> Wire:
        """How it behaves now."""
        return self._wire

    @property
    def connections(self) -> int:
        """How many connections are open now, forgotten ones included."""
        return len(self._connections)

    def set_wire(self, wire: Wire) -> None:
        """Behave like this from now on, also to connections that are open.

        Raises:
            ValueError: the wire has changes, and this proxy does not read frames.
        """
        if wire.changes and not self._reads_frames:
            raise ValueError("This proxy passes bytes as they are; changes need one that reads frames.")
        self._owner.run(self._change(wire))

    def forget(self) -> None:
        """Let nothing pass on the connections that are open, and close none: as a firewall that has lost its state."""
        self._owner.run(self._forget())

    def reset_forgotten(self) -> None:
        """Reset the connections on which nothing passes any more, as a firewall does that refuses them now."""
        self._owner.run(self._reset(only_forgotten=True))

    def up(self, upstream: int | None = None) -> None:
        """Listen; with a port, for a broker whose listener has this port of the loopback."""
        if upstream is not None:
            self._upstream = (HOST, upstream)
        if self._server is None:
            self._owner.run(self._listen())

    def down(self) -> None:
        """Stop listening, so that connections are refused, and close those that are open."""
        self._owner.run(self._close())

    async def _change(self, wire: Wire) -> None:
        for connection in self._connections:
            self._has_forgotten(connection)
        self._wire = wire
        if wire.black_hole:
            self._open.clear()
        else:
            self._open.set()
        if wire.reset:
            await self._reset()

    async def _forget(self) -> None:
        for connection in self._connections:
            connection.is_forgotten = True

    async def _listen(self) -> None:
        end = time.monotonic() + _LISTEN_WITHIN_S
        while True:
            try:
                self._server = await asyncio.start_server(self._accepted, HOST, self.port)
            except OSError:
                # While it was not listening, somebody's connection may have got the port.
                if time.monotonic() > end:
                    raise
                await asyncio.sleep(_POLL_S)
            else:
                return

    async def _close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            # Python 3.11 forgets the socket of a connection that it has accepted when the server is closed in the same
            # turn of the loop.
            for listening in server.sockets:
                asyncio.get_running_loop().remove_reader(listening.fileno())
            for _ in range(_TURNS):
                await asyncio.sleep(0)
            server.close()
        await self._reset()

    async def _reset(self, *, only_forgotten: bool = False) -> None:
        for connection in list(self._connections):
            if connection.is_forgotten or not only_forgotten:
                connection.abort()

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Noted at once: a task that is cancelled before its first step could not close it.
        self._owner.transports.append(writer.transport)
        if self._owner.is_ending:
            writer.transport.abort()
            return
        task = asyncio.ensure_future(self._accept(reader, writer))
        self._owner.accepting.add(task)
        task.add_done_callback(self._owner.accepting.discard)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = _Side(reader, writer)
        self.accepted += 1
        if self._wire.reset:
            client.abort()
            return
        try:
            broker = _Side(*await asyncio.open_connection(*self._upstream))
        except BaseException as error:
            # Also if the proxy stops meanwhile.
            client.abort()
            if not isinstance(error, OSError):
                raise
            return
        self._owner.transports.append(broker.writer.transport)
        if self._owner.is_ending:
            client.abort()
            broker.abort()
            return
        connection = _Connection(client, broker)
        if self._reads_frames:
            connection.conversation = Conversation(self._count, self._note_client)
        self._connections.add(connection)
        tasks = [
            asyncio.ensure_future(task)
            for from_broker in (False, True)
            for task in (self._take(connection, from_broker), self._deliver(connection, from_broker))
        ]
        tasks.append(asyncio.ensure_future(connection.await_abort()))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            self._owner.failures += [end for end in ends if isinstance(end, Exception)]
            self._connections.discard(connection)
            connection.close()

    def _count(self, api: str) -> int:
        self.answers[api] += 1
        return self.answers[api]

    def _note_client(self, api: str, client_id: str) -> None:
        self.clients[api, client_id] += 1

    async def _take(self, connection: _Connection, from_broker: bool) -> None:
        """Receive what one side sends, and hand it to the delivery of that direction until the side closes."""
        reader = (connection.broker if from_broker else connection.client).reader
        held = connection.held[from_broker]
        with suppress(OSError):
            while data := await reader.read(_CHUNK_BYTES):
                if self._has_forgotten(connection):
                    continue
                connection.used_at = time.monotonic()
                for piece in self._pieces(connection, data, from_broker=from_broker):
                    await held.put((time.monotonic() + self._wire.delay_s, piece))
                    if piece is None:
                        return
        if from_broker and self._has_forgotten(connection):
            # Its end does not pass either. The client's own does, here: no program could see the difference.
            await asyncio.Event().wait()
        # The delivery ends the connection, behind what is in flight.
        await held.put((0.0, b""))
        await asyncio.Event().wait()

    def _has_forgotten(self, connection: _Connection) -> bool:
        limit_s = self._wire.forget_after_s
        if limit_s is not None and time.monotonic() - connection.used_at > limit_s:
            connection.is_forgotten = True
        return connection.is_forgotten

    def _pieces(self, connection: _Connection, data: bytes, *, from_broker: bool) -> Iterator[bytes | None]:
        """Yield what is to be delivered for bytes that arrived: these, or whole responses that may be changed.

        None is a reset.
        """
        if connection.conversation is None:
            yield data
            return
        if not from_broker:
            connection.conversation.see_request(data)
            yield data
            return
        for answer in connection.conversation.answers(data):
            for change in (*self._own_changes, *self._wire.changes):
                change(answer)
            if answer.is_lost:
                connection.is_forgotten = True
                return
            if answer.cut_at is not None:
                yield answer.frame[: answer.cut_at]
                yield None
                return
            yield answer.frame

    async def _deliver(self, connection: _Connection, from_broker: bool) -> None:
        """Send on what was taken, as the wire wants it, until the end of the connection."""
        target = connection.client if from_broker else connection.broker
        held = connection.held[from_broker]
        with suppress(OSError):
            while True:
                due, data = await held.get()
                if data == b"":
                    return
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                await self._open.wait()
                is_cut = data is None or (from_broker and self._rng.random() < self._wire.cut)
                if data is not None:
                    if from_broker and self._rng.random() < self._wire.flip:
                        data = _with_bit_flipped(data, self._rng.randrange(len(data) * 8))
                    await self._send(target, data[: len(data) // 2] if is_cut else data, from_broker=from_broker)
                if is_cut:
                    connection.abort()
                    return

    async def _send(self, target: _Side, data: bytes, *, from_broker: bool) -> None:
        rate, drip = self._wire.rate, self._wire.drip
        position = 0
        while position < len(data):
            size = len(data) - position
            if rate is not None:
                size = min(size, max(1, int(rate * _RATE_STEP_S)))
                await self._lines[from_broker].carry(size, rate)
            elif from_broker and drip is not None and (drip.pause_s or position < _DRIPPED_BYTES):
                size = min(size, drip.size)
                await asyncio.sleep(drip.pause_s)
            target.writer.write(data[position : position + size])
            await target.writer.drain()
            position += size


def _with_bit_flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


class _Line:
    """One direction of a slow line, which all connections of a proxy share."""

    def __init__(self) -> None:
        self._free_at = 0.0

    async def carry(self, size: int, rate: float) -> None:
        """Wait until the line has carried this number of bytes, behind what was there before."""
        self._free_at = max(self._free_at, time.monotonic()) + size / rate
        await asyncio.sleep(self._free_at - time.monotonic())


@dataclass(eq=False)
class _Side:
    """One end of a connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def __post_init__(self) -> None:
        self._socket().setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # What is sent is with the kernel, so that a rate is kept and a cut comes behind what was sent before it.
        self.writer.transport.set_write_buffer_limits(high=0)

    def _socket(self) -> Any:
        return self.writer.get_extra_info("socket")

    def abort(self) -> None:
        """Close with a reset."""
        with suppress(OSError):
            self._socket().setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
        self.writer.transport.abort()


@dataclass(eq=False)
class _Connection:
    """A client's connection and the one to its broker.

    Attributes:
        client: the side of the client.
        broker: the side of the broker.
        conversation: its requests and responses, if the proxy reads frames.
        used_at: when something was sent on it last.
        is_forgotten: nothing passes any more.
        aborted: set when both sides are reset.
        held: what is in flight, by whether it comes from the broker, and the time when it is due; no bytes are the end
            of the connection, None is a reset.
    """

    client: _Side
    broker: _Side
    conversation: Conversation | None = None
    used_at: float = field(default_factory=time.monotonic)
    is_forgotten: bool = False
    aborted: asyncio.Event = field(default_factory=asyncio.Event)
    held: dict[bool, asyncio.Queue[tuple[float, bytes | None]]] = field(
        default_factory=lambda: {from_broker: asyncio.Queue(_HELD_CHUNKS) for from_broker in (False, True)}
    )

    async def await_abort(self) -> None:
        """Wait until both are reset."""
        await self.aborted.wait()

    def abort(self) -> None:
        """Reset both."""
        self.aborted.set()
        self.client.abort()
        self.broker.abort()

    def close(self) -> None:
        """Close both."""
        self.client.writer.close()
        self.broker.writer.close()


@dataclass
class Proxies:
    """The thread and the event loop of all proxies; closed with the block.

    Attributes:
        seed: of the random cuts and flips.
        all: the proxies so far.
        failures: errors of the proxies themselves, such as of a change; the first is raised at the end of the block.
        transports: of all connections, which are closed at the end.
        accepting: the tasks of connections.
        is_ending: whether the block ends, so that nothing new is passed on.
    """

    seed: int = 1
    all: list[Proxy] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)
    transports: list[asyncio.WriteTransport] = field(default_factory=list)
    accepting: set[asyncio.Future[None]] = field(default_factory=set)
    is_ending: bool = False

    def __enter__(self) -> Proxies:  # noqa: PYI034 - typing.Self needs Python 3.11
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxies", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.is_ending = True
        for proxy in self.all:
            proxy.down()
        self.run(self._finish())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        if self.failures and error is None:
            raise self.failures[0]

    def add(self, upstream: Address = (HOST, 0), *, reads_frames: bool = False) -> Proxy:
        """Return a new proxy that does not listen yet."""
        number = len(self.all)
        name = _NAMES[number % len(_NAMES)]
        self.all.append(Proxy(self, self.seed + number, name, upstream, reads_frames=reads_frames))
        return self.all[-1]

    def before(self, *brokers: Address) -> list[Proxy]:
        """Return a listening proxy for each of some brokers, which know nothing of them.

        The addresses in responses are replaced, so that clients which know one of the proxies see the proxies only.
        """
        made = [self.add(broker, reads_frames=True) for broker in brokers]
        ports = {broker: proxy.port for broker, proxy in zip(brokers, made, strict=True)}

        def address_of(broker: Address) -> Address:
            return (HOST, ports[broker]) if broker in ports else broker

        for proxy in made:
            proxy._own_changes = (readdressed(address_of),)
            proxy.up()
        return made

    def set_wire(self, wire: Wire) -> None:
        """Let all proxies behave like this from now on."""
        for proxy in self.all:
            proxy.set_wire(wire)

    def run(self, task: Coroutine[Any, Any, None]) -> None:
        """Run something in the loop, and wait for it."""
        asyncio.run_coroutine_threadsafe(task, self._loop).result(_RUN_WITHIN_S)

    async def _finish(self) -> None:
        """Let the tasks of connections end, which are all aborted, and the tasks that a late accept has started."""
        end = time.monotonic() + _END_WITHIN_S
        while left := asyncio.all_tasks() - {asyncio.current_task()}:
            _, still = await asyncio.wait(left, timeout=max(0.0, end - time.monotonic()))
            for task in still:
                task.cancel()
            await asyncio.gather(*still, return_exceptions=True)
        for transport in self.transports:
            transport.abort()
        # A transport closes its socket in the turn after, and the loop stops after these.
        for _ in range(_TURNS):
            await asyncio.sleep(0)


@contextmanager
def proxied(bootstrap_servers: str) -> Iterator[Proxy]:
    """Return a proxy that reads frames, before the one broker of an address."""
    host, _, port = bootstrap_servers.rpartition(":")
    with Proxies() as proxies:
        (made,) = proxies.before((host, int(port)))
        yield made
