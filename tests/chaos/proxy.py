"""TCP proxies that clients reach brokers through, each of which can misbehave as a bad wire does."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
import time
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from pyspark_kafka.testing.broker_config import HOST

_CHUNK_BYTES = 1 << 16
# What brokers are called in turn. The second name has an address of IPv6, too, at which nobody listens.
_NAMES = (HOST, "localhost")
_POLL_S = 0.02
# With SO_LINGER on and 0 s, closing sends RST.
_LINGER_ZERO = struct.pack("ii", 1, 0)
_LISTEN_WITHIN_S = 10.0
# A byte at a time is for what a client does with pieces; more than this of it would only take CPU time.
_DRIPPED_BYTES = 4096


@dataclass(frozen=True)
class Wire:
    """How a proxy handles what passes.

    Attributes:
        delay_s: each chunk is held back for this time, in both directions.
        black_hole: nothing passes and nothing is closed; connections are still accepted.
        cut: the share of broker's chunks of which only a half passes, before the connection is reset.
        reset: all connections, new ones included, are reset.
        drip: brokers' bytes arrive one at a time.
    """

    delay_s: float = 0.0
    black_hole: bool = False
    cut: float = 0.0
    reset: bool = False
    drip: bool = False


CLEAN = Wire()


class Proxy:
    """One listening port, one broker behind it. Made by `Proxies`."""

    def __init__(self, owner: Proxies, seed: int, name: str = HOST) -> None:
        self._owner = owner
        self._name = name
        self._rng = random.Random(seed)
        self._upstream = 0
        self._wire = CLEAN
        # Cleared while the wire is a black hole.
        self._open = asyncio.Event()
        self._open.set()
        self._server: asyncio.Server | None = None
        self._connections: set[_Connection] = set()
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

    def set_wire(self, wire: Wire) -> None:
        """Behave like this from now on, also to connections that are open."""
        self._owner.run(self._change(wire))

    def forget(self) -> None:
        """Let nothing pass on the connections that are open, and close none: as a firewall that has lost its state."""
        self._owner.run(self._forget())

    def reset_forgotten(self) -> None:
        """Reset the connections on which nothing passes since `forget`, as a firewall does that refuses them now."""
        self._owner.run(self._reset(only_forgotten=True))

    def up(self, upstream: int) -> None:
        """Listen, for a broker whose listener has this port."""
        self._upstream = upstream
        if self._server is None:
            self._owner.run(self._listen())

    def down(self) -> None:
        """Stop listening, so that connections are refused, and close those that are open."""
        self._owner.run(self._close())

    async def _change(self, wire: Wire) -> None:
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
                self._server = await asyncio.start_server(self._accept, HOST, self.port)
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
            server.close()
        await self._reset()

    async def _reset(self, *, only_forgotten: bool = False) -> None:
        for connection in list(self._connections):
            if connection.is_forgotten or not only_forgotten:
                connection.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = _Side(reader, writer)
        if self._wire.reset:
            client.abort()
            return
        try:
            broker = _Side(*await asyncio.open_connection(HOST, self._upstream))
        except OSError:
            client.abort()
            return
        connection = _Connection(client, broker)
        self._connections.add(connection)
        pumps = [
            asyncio.ensure_future(self._pump(connection, client, broker, from_broker=False)),
            asyncio.ensure_future(self._pump(connection, broker, client, from_broker=True)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            self._connections.discard(connection)
            connection.close()

    async def _pump(self, connection: _Connection, source: _Side, target: _Side, *, from_broker: bool) -> None:
        with suppress(OSError):
            while data := await source.reader.read(_CHUNK_BYTES):
                if connection.is_forgotten:
                    continue
                await self._pass(data, target, from_broker=from_broker)

    async def _pass(self, data: bytes, target: _Side, *, from_broker: bool) -> None:
        await self._open.wait()
        if self._wire.delay_s:
            await asyncio.sleep(self._wire.delay_s)
        if from_broker and self._rng.random() < self._wire.cut:
            target.writer.write(data[: len(data) // 2])
            await target.writer.drain()
            raise ConnectionResetError
        if from_broker and self._wire.drip:
            for position in range(min(len(data), _DRIPPED_BYTES)):
                target.writer.write(data[position : position + 1])
                await target.writer.drain()
                await asyncio.sleep(0)
            data = data[_DRIPPED_BYTES:]
        target.writer.write(data)
        await target.writer.drain()


@dataclass(eq=False)
class _Side:
    """One end of a connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def __post_init__(self) -> None:
        self._socket().setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _socket(self) -> Any:
        return self.writer.get_extra_info("socket")

    def abort(self) -> None:
        """Close with a reset."""
        with suppress(OSError):
            self._socket().setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
        self.writer.transport.abort()


@dataclass(eq=False)
class _Connection:
    """A client's connection and the one to its broker; one that is forgotten passes nothing on."""

    client: _Side
    broker: _Side
    is_forgotten: bool = False

    def abort(self) -> None:
        """Reset both."""
        self.client.abort()
        self.broker.abort()

    def close(self) -> None:
        """Close both."""
        self.client.writer.close()
        self.broker.writer.close()


@dataclass
class Proxies:
    """The thread and the event loop of all proxies; closed with the block."""

    seed: int = 1
    all: list[Proxy] = field(default_factory=list)

    def __enter__(self) -> Proxies:  # noqa: PYI034 - typing.Self needs Python 3.11
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxies", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for proxy in self.all:
            proxy.down()
        self.run(self._finish())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def add(self) -> Proxy:
        """Make a proxy that does not listen yet."""
        self.all.append(Proxy(self, self.seed + len(self.all), _NAMES[len(self.all) % len(_NAMES)]))
        return self.all[-1]

    def run(self, task: Coroutine[Any, Any, None]) -> None:
        """Run something in the loop, and wait for it."""
        asyncio.run_coroutine_threadsafe(task, self._loop).result(30)

    async def _finish(self) -> None:
        """Let the tasks of connections end."""
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
