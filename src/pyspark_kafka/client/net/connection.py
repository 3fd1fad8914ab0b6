"""One connection to one broker: TCP, TLS, version negotiation, SASL, requests sent ahead, answers in order.

What lives here: the socket, and everything that is true of one connection. What must not: which broker to ask, when to
try again, what an error code in an answer means. Layer: client.
"""

from __future__ import annotations

import contextlib
import math
import select
import ssl
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_kafka.client.deadline import Deadline
from pyspark_kafka.client.net import trace
from pyspark_kafka.client.net.buffers import FrameBuffers
from pyspark_kafka.client.net.errors import closed_by_broker, handshake_failed, lost, silent
from pyspark_kafka.client.net.sasl import authenticate
from pyspark_kafka.client.net.tcp import connect, resolve
from pyspark_kafka.client.net.tls import tls_context
from pyspark_kafka.client.net.trace import WireEvent, WireStep
from pyspark_kafka.client.waiting import contact_of
from pyspark_kafka.client.wire.framed_request import FramedRequest
from pyspark_kafka.client.wire.frames import FRAME_LIMIT_BYTES, parse_frame_size, parse_response_header
from pyspark_kafka.client.wire.messages import ApiVersionsRequest, ErrorCode, broker_error
from pyspark_kafka.errors import ConnectorError, DeadlineError, ProtocolError, TransportError
from pyspark_kafka.version import __version__

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable, Sequence

    from pyspark_kafka.options import ConnectionOptions

_CLIENT_NAME = "pyspark-kafka"
_API_VERSIONS_KEY = 18
_SIZE_BYTES = 4
# Renew before the broker closes the session; the share leaves time for one fetch under way (KIP-368).
_SESSION_SHARE = 0.85


@dataclass(frozen=True, slots=True)
class _Sent:
    """A request whose answer is awaited."""

    correlation_id: int
    api_key: int
    api_name: str
    api_version: int
    flexible_header: bool
    response_class: Any
    # None while the trace is off.
    sent_at: float | None


@dataclass(frozen=True, slots=True)
class RawResponse:
    """An answer that is not decoded.

    Attributes:
        api_version: the version the body is written in.
        body: the bytes behind the response header; a view of a buffer that is used again once no view of it is alive.
    """

    api_version: int
    body: memoryview


class Connection:
    """A negotiated, authenticated connection to one broker.

    Requests may be sent ahead; answers are received in the order sent. Any failure to send or receive closes the
    connection: what was in flight is then unknown to the caller. Not for use by two threads at a time.

    Runs on: driver and executor; methods that take a deadline block. Does not pickle.

    Attributes:
        host: the name it was opened with.
        port: the port it was opened with.
        address: `host:port`, as errors say it.
        features: the level of each feature that the cluster has settled on, by name (KIP-584).
    """

    def __init__(
        self, sock: socket.socket, host: str, port: int, options: ConnectionOptions, buffers: FrameBuffers | None = None
    ) -> None:
        """Take over a connected socket; use `open`."""
        self.host = host
        self.port = port
        self.address = _address(host, port)
        self._options = options
        self._socket: socket.socket | None = sock
        self._in_flight: deque[_Sent] = deque()
        self._versions: dict[int, tuple[int, int]] = {}
        self.features: dict[str, int] = {}
        self._correlation_id = 0
        self._answers = 0
        self._contact = contact_of(options.bootstrap_servers)
        self._buffers = buffers if buffers is not None else FrameBuffers()
        self._prefix = bytearray(4)
        # Of the answer that is being received: its memory once its size is known, and how much of it (or before that,
        # of the size) has arrived.
        self._frame: memoryview | None = None
        self._arrived = 0
        self._session_ends_at: float | None = None

    @classmethod
    def open(
        cls,
        host: str,
        port: int,
        options: ConnectionOptions,
        deadline: Deadline,
        *,
        buffers: FrameBuffers | None = None,
        watch: Callable[[socket.socket], None] | None = None,
    ) -> Connection:
        """Connect, encrypt, negotiate versions and authenticate.

        All addresses of the name are tried, each for at most `connect_timeout_ms`; also the ones after an address that
        takes the connection and then does not get through with the rest.

        Args:
            host: the broker's name.
            port: the broker's port.
            options: security, timeouts, socket buffers.
            deadline: for all of it.
            buffers: receive buffers for raw answers, shared with other connections of the same user; None makes some.
            watch: is told every socket before it blocks, so that another thread can end the wait by shutting it down.

        Raises:
            TransportError: the broker cannot be reached, or closed the connection.
            DeadlineError: no answer in time.
            AccessError: credentials refused.
            ProtocolError: the other side does not speak Kafka's protocol.
            OptionError: TLS files or the SASL mechanism cannot be used.
        """
        # Fails before a connection is made if the files are wrong.
        context = tls_context(options) if options.uses_tls else None
        addresses = resolve(host, port)
        failed: ConnectorError | None = None
        began = time.monotonic()
        while True:
            share = deadline.within(deadline.remaining_s() * 1000 / len(addresses))
            try:
                sock, address = connect(f"{host}:{port}", addresses, options, deadline, watch)
            except (TransportError, DeadlineError) as error:
                if trace.is_on():
                    _trace_connection(WireStep.FAILED, _address(host, port), began, trace.reason_of(error))
                # What went wrong on an address that could be reached says more.
                raise (failed or error) from error
            connection = cls(sock, host, port, options, buffers)
            try:
                connection._set_up(context, share.within(options.connect_timeout_ms), watch)
            except (TransportError, DeadlineError) as error:
                connection._fail(error)
                addresses.remove(address)
                if not error.retriable or not addresses or deadline.expired:
                    raise
                failed = error
            except BaseException as error:
                connection._fail(error)
                raise
            else:
                if trace.is_on():
                    _trace_connection(WireStep.OPENED, connection.address, began)
                return connection

    def _set_up(
        self, context: ssl.SSLContext | None, deadline: Deadline, watch: Callable[[socket.socket], None] | None
    ) -> None:
        if context is not None:
            self._encrypt(context, deadline, watch)
        self._negotiate_versions(deadline)
        if self._options.uses_sasl:
            lifetime_ms = authenticate(self, self.host, self._options, deadline)
            if lifetime_ms:
                self._session_ends_at = time.monotonic() + lifetime_ms * _SESSION_SHARE / 1000

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{len(self._in_flight)} in flight"
        return f"Connection({self.address}, {state})"

    @property
    def closed(self) -> bool:
        """Whether it can no longer be used."""
        return self._socket is None

    @property
    def in_flight(self) -> int:
        """How many requests await their answer."""
        return len(self._in_flight)

    @property
    def idle_and_alive(self) -> bool:
        """Whether a new conversation can start: open, nothing in flight, not ended by the broker, session not old.

        Costs one system call.
        """
        if self._socket is None or self._in_flight:
            return False
        if self._session_ends_at is not None and time.monotonic() >= self._session_ends_at:
            return False
        # Readable with nothing in flight: the end of the stream, or bytes nobody asked for.
        return not self.readable(0.0)

    def readable(self, timeout_s: float) -> bool:
        """Whether bytes (or the end of the stream) arrive within the time; does not read them."""
        return bool(wait_readable([self], timeout_s))

    def supports(self, request_class: Any, min_version: int = 0) -> bool:
        """Whether broker and client share a version of this request that is not below `min_version`."""
        shared = self._version_range(request_class)
        return shared is not None and shared[1] >= min_version

    def api_version(self, request_class: Any, *, max_version: int | None = None) -> int:
        """Give the version that a request of this class is sent in.

        Args:
            request_class: a class (or an instance) of `client.protocol`.
            max_version: an upper bound of the caller.

        Raises:
            ProtocolError: broker and client share no version.
        """
        shared = self._version_range(request_class)
        if shared is not None:
            lowest, highest = shared
            if max_version is None:
                return highest
            if max_version >= lowest:
                return min(highest, max_version)
        known = self._versions.get(request_class.API_KEY)
        ours = request_class.valid_versions
        raise ProtocolError(
            f"{self.address} and this client share no version of {request_class.name}: the broker has "
            f"{f'{known[0]} to {known[1]}' if known else 'none'}, the client {ours[0]} to "
            f"{ours[1] if max_version is None else min(ours[1], max_version)}.",
            condition="UNSUPPORTED_VERSION",
            hint="The broker is too old, or a gateway leaves this request out.",
            facts={"broker": self.address, "request": request_class.name},
        )

    def _version_range(self, request_class: Any) -> tuple[int, int] | None:
        broker = self._versions.get(request_class.API_KEY)
        if broker is None:
            return None
        ours = request_class.valid_versions
        lowest, highest = max(broker[0], ours[0]), min(broker[1], ours[1])
        return (lowest, highest) if lowest <= highest else None

    def send(self, request: Any, *, max_version: int | None = None, timeout_ms: float | None = None) -> int:
        """Send a request in the negotiated version without waiting for its answer.

        Args:
            request: an instance of a class of `wire.messages`, with no version set, or a `FramedRequest`.
            max_version: an upper bound for the version.
            timeout_ms: longest wait for the socket to take the bytes; None takes `request_timeout_ms`.

        Returns:
            The version it was sent in.

        Raises:
            TransportError: the connection is lost; it is closed.
            DeadlineError: the broker does not take the bytes; the connection is closed.
            ProtocolError: no common version.
        """
        version = self.api_version(request, max_version=max_version)
        self._send_versioned(request, version, timeout_ms)
        return version

    def _send_versioned(self, request: Any, version: int, timeout_ms: float | None) -> None:
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        client_id = self._options.client_id
        if isinstance(request, FramedRequest):
            pieces = request.build(version, self._correlation_id, client_id)
            flexible, has_response = request.is_flexible(version), request.has_response
            response_class = request.response_class(version)
        else:
            request.API_VERSION = version
            request.with_header(correlation_id=self._correlation_id, client_id=client_id)
            pieces = [request.encode(framed=True, header=True)]
            flexible, has_response = request.flexible_version_q(version), request.expect_response()
            response_class = request.header.get_response_class()
        sent_at = time.monotonic() if trace.is_on() else None
        try:
            self._send_pieces(pieces, timeout_ms)
        except BaseException as error:
            # Also on an interrupt: after half a frame, no other can follow.
            self._fail(error, _Sent(self._correlation_id, request.API_KEY, request.name, version, False, None, sent_at))
            raise
        if sent_at is not None:
            self._trace_request(request, version, pieces)
        if has_response:
            # The one response whose header is never flexible, so that every client can read it (KIP-511).
            flexible = flexible and request.API_KEY != _API_VERSIONS_KEY
            self._in_flight.append(
                _Sent(self._correlation_id, request.API_KEY, request.name, version, flexible, response_class, sent_at)
            )

    def _trace_request(self, request: Any, version: int, pieces: Sequence[bytes | bytearray | memoryview]) -> None:
        name = request.name.removesuffix("Request")
        size = sum(map(len, pieces)) - _SIZE_BYTES
        count = trace.partitions_of(request)
        trace.emit(WireEvent(WireStep.SENT, self.address, name, version, self._correlation_id, size, count))

    def _trace_response(self, sent: _Sent, step: WireStep, size: int = 0, reason: str = "") -> None:
        elapsed_ms = None if sent.sent_at is None else (time.monotonic() - sent.sent_at) * 1000
        name = sent.api_name.removesuffix("Request")
        trace.emit(
            WireEvent(
                step, self.address, name, sent.api_version, sent.correlation_id, size,
                elapsed_ms=elapsed_ms, reason=reason,
            )
        )  # fmt: skip

    def _fail(self, error: BaseException, sent: _Sent | None = None) -> None:
        """Close because of a failure: of the connection as a whole, or of one request."""
        if trace.is_on():
            if sent is not None:
                self._trace_response(sent, WireStep.FAILED, reason=trace.reason_of(error))
            elif not self.closed:
                _trace_connection(WireStep.FAILED, self.address, None, trace.reason_of(error))
        self.close()

    def _send_pieces(self, pieces: Iterable[bytes | bytearray | memoryview], timeout_ms: float | None) -> None:
        """Send the pieces of one frame as they are."""
        sock = self._open_socket()
        budget = Deadline(self._options.request_timeout_ms if timeout_ms is None else timeout_ms)
        try:
            # sendall counts the timeout over all of its parts.
            sock.settimeout(max(0.001, budget.remaining_s()))
            for piece in pieces:
                sock.sendall(piece)
        except TimeoutError as error:
            raise budget.error(f"Sending a request to {self.address}", error) from error
        except OSError as error:
            raise lost(self.address, "while a request was sent", error) from error

    def receive(self, deadline: Deadline) -> Any:
        """Wait for the answer to the oldest request in flight and decode it.

        Raises:
            TransportError: the connection is lost; it is closed.
            DeadlineError: no answer in time; the connection is closed.
            ProtocolError: the bytes are not the answer; the connection is closed.
        """
        received = self._receive_frame(deadline, _new_memory)
        if received is None:
            raise RuntimeError("a deadline ends with an answer or an error")
        return self._decode(*received)

    def receive_arrived(self) -> Any | None:
        """Take in what has arrived of the answer to the oldest request in flight, without waiting.

        Returns:
            The decoded answer; None if it is not complete. What there is of it is kept for the next call.

        Raises:
            TransportError: the connection is lost; it is closed.
            ProtocolError: the bytes are not the answer; the connection is closed.
        """
        received = self._receive_frame(None, _new_memory)
        return None if received is None else self._decode(*received)

    def _decode(self, sent: _Sent, frame: memoryview, start: int) -> Any:
        try:
            return sent.response_class.decode(frame[start:])
        except Exception as error:
            # kafka-python's decoders raise whatever their parsing meets: struct.error, IndexError, UnicodeError, …
            failure = ProtocolError(
                f"The answer of {self.address} to {sent.api_name} version {sent.api_version} ({len(frame)} bytes) "
                f"cannot be decoded: {type(error).__name__}: {error}. The connection was closed.",
                condition="RESPONSE_INVALID",
                facts={"broker": self.address, "request": sent.api_name, "version": sent.api_version},
            )
            self._fail(failure, sent)
            raise failure from error

    def receive_raw(self, deadline: Deadline, stall_s: float = math.inf) -> RawResponse | None:
        """Wait for the answer to the oldest request in flight; give its bytes without decoding or copying them.

        Args:
            deadline: for all of it.
            stall_s: for how long nothing may arrive until the wait is given up for now.

        Returns:
            The answer; None if it stalled. What there is of it is kept for the next call.

        Raises:
            TransportError: the connection is lost; it is closed.
            DeadlineError: no answer in time; the connection is closed.
            ProtocolError: the frame is not the answer; the connection is closed.
        """
        received = self._receive_frame(deadline, self._buffers.take, stall_s)
        if received is None:
            return None
        sent, frame, start = received
        return RawResponse(sent.api_version, frame[start:])

    def call(self, request: Any, deadline: Deadline, *, max_version: int | None = None) -> Any:
        """Send a request and wait for its answer; nothing else may be in flight.

        The wait is bounded by `answer_timeout_ms` too.

        Raises:
            TransportError: the connection is lost; it is closed.
            DeadlineError: no answer in time; the connection is closed.
            ProtocolError: no common version, or the bytes are not the answer.
        """
        if self._in_flight:
            raise ProtocolError(
                f"A call on the connection to {self.address} would mix with {len(self._in_flight)} requests in flight.",
                condition="CONNECTION_BUSY",
                hint="This is a defect of this package; please report it.",
                facts={"broker": self.address},
            )
        step = deadline.within(self._options.answer_timeout_ms)
        self.send(request, max_version=max_version, timeout_ms=step.remaining_s() * 1000)
        return self.receive(step)

    def close(self) -> None:
        """Close the socket; requests in flight stay unanswered. Safe to call again."""
        sock, self._socket = self._socket, None
        if sock is not None and trace.is_on():
            pending = f"{len(self._in_flight)} in flight" if self._in_flight else ""
            _trace_connection(WireStep.CLOSED, self.address, None, pending)
        self._in_flight.clear()
        self._frame, self._arrived = None, 0
        if sock is not None:
            with contextlib.suppress(OSError):  # the connection may be gone already, which is what is wanted
                sock.close()

    def _open_socket(self) -> socket.socket:
        if self._socket is None:
            raise TransportError(
                f"The connection to {self.address} is closed.",
                condition="CONNECTION_CLOSED",
                retriable=True,
                facts={"broker": self.address},
            )
        return self._socket

    def _encrypt(
        self, context: ssl.SSLContext, deadline: Deadline, watch: Callable[[socket.socket], None] | None
    ) -> None:
        sock = self._open_socket()
        sock.settimeout(max(0.001, deadline.remaining_s()))
        try:
            # In two steps: the first one makes another object of the socket.
            encrypted = context.wrap_socket(sock, server_hostname=self.host, do_handshake_on_connect=False)
            self._socket = encrypted
            if watch is not None:
                watch(encrypted)
            encrypted.do_handshake()
        except TimeoutError as error:
            raise deadline.error(f"The TLS handshake with {self.address}", error) from error
        except ssl.SSLCertVerificationError as error:
            raise TransportError(
                f"The certificate of {self.address} was not accepted: {error.verify_message or error}.",
                condition="TLS_CERTIFICATE_REJECTED",
                hint="Name the authority's certificate with kafka.ssl.truststore.location (PEM), and reach the broker "
                "by a name that its certificate holds.",
                facts={"broker": self.address, "reason": error.verify_message or error},
            ) from error
        except OSError as error:
            raise handshake_failed(self.address, self._options.security_protocol, error) from error

    def _negotiate_versions(self, deadline: Deadline) -> None:
        version = ApiVersionsRequest.max_version
        while True:
            request = ApiVersionsRequest(client_software_name=_CLIENT_NAME, client_software_version=__version__)
            self._send_versioned(request, version, deadline.remaining_s() * 1000)
            response = self.receive(deadline)
            offered = {entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys}
            if response.error_code == ErrorCode.NONE:
                self._versions = offered
                # Only from version 3 on; older ones have none.
                self.features = {entry.name: entry.max_version_level for entry in response.finalized_features or ()}
                return
            # The refusal is written in version 0 and since Kafka 2.4 says which versions there are.
            fallback = min(offered.get(_API_VERSIONS_KEY, (0, 0))[1], version - 1)
            if response.error_code != ErrorCode.UNSUPPORTED_VERSION or fallback < 0:
                raise broker_error(
                    response.error_code,
                    f"Asking {self.address} for its API versions failed",
                    broker=self.address,
                )
            version = fallback

    def _receive_frame(
        self, deadline: Deadline | None, take: Callable[[int], memoryview], stall_s: float = math.inf
    ) -> tuple[_Sent, memoryview, int] | None:
        """Receive the oldest answer; None if it stalls, or without a deadline if it has not arrived whole."""
        if not self._in_flight:
            raise ProtocolError(
                f"No request to {self.address} is in flight, so no answer can be received.",
                condition="NOTHING_IN_FLIGHT",
                hint="This is a defect of this package; please report it.",
                facts={"broker": self.address},
            )
        sent = self._in_flight[0]
        try:
            if self._frame is None:
                if not self._receive_into(memoryview(self._prefix), sent, deadline, stall_s):
                    return None
                self._frame = take(parse_frame_size(bytes(self._prefix), FRAME_LIMIT_BYTES, self.address))
                self._arrived = 0
            if not self._receive_into(self._frame, sent, deadline, stall_s):
                return None
            frame, self._frame, self._arrived = self._frame, None, 0
            correlation_id, start = parse_response_header(frame, flexible=sent.flexible_header, address=self.address)
            if correlation_id != sent.correlation_id:
                raise ProtocolError(  # noqa: TRY301 - closed with all other failures below
                    f"{self.address} answered request {correlation_id} where the answer to request "
                    f"{sent.correlation_id} ({sent.api_name}) was due. The connection was closed.",
                    condition="CORRELATION_ID_MISMATCH",
                    facts={"broker": self.address, "expected": sent.correlation_id, "found": correlation_id},
                )
        except BaseException as error:
            # Also on an interrupt: after half a frame, nothing else can be read.
            self._fail(error, sent)
            raise
        self._in_flight.popleft()
        self._answers += 1
        if trace.is_on():
            self._trace_response(sent, WireStep.RECEIVED, len(frame))
        self._contact.answered(self.address)
        return sent, frame, start

    def _receive_into(self, view: memoryview, sent: _Sent, deadline: Deadline | None, stall_s: float) -> bool:
        sock = self._open_socket()
        size = len(view)
        try:
            while self._arrived < size:
                # With no time left, what has arrived is taken all the same: it may be the whole answer.
                sock.settimeout(0.0 if deadline is None else min(stall_s, deadline.remaining_s()))
                count = sock.recv_into(view[self._arrived :])
                if count == 0:
                    raise self._closed_by_broker(sent)
                self._arrived += count
        except (TimeoutError, BlockingIOError, ssl.SSLWantReadError) as error:
            if deadline is None or (stall_s < math.inf and not deadline.expired):
                return False
            arrived = TimeoutError(f"{self._arrived} of {size} bytes had arrived")
            raise self._no_answer(sent, deadline, arrived) from error
        except ssl.SSLError as error:
            if self._answers:
                raise lost(self.address, f"while the answer to {sent.api_name} was awaited", error) from error
            # With TLS 1.3 a refused client certificate shows here, after a handshake that seemed to succeed.
            raise handshake_failed(self.address, self._options.security_protocol, error) from error
        except OSError as error:
            if isinstance(error, ConnectionResetError):
                raise self._closed_by_broker(sent, error) from error
            raise lost(self.address, f"while the answer to {sent.api_name} was awaited", error) from error
        return True

    def _no_answer(self, sent: _Sent, deadline: Deadline, error: BaseException) -> DeadlineError:
        if self._answers or self._options.uses_tls:
            return deadline.error(f"Waiting for the answer of {self.address} to {sent.api_name}", error)
        return silent(self.address, sent.api_name, deadline, self._options.security_protocol)

    def _closed_by_broker(self, sent: _Sent, cause: OSError | None = None) -> TransportError:
        return closed_by_broker(self.address, sent.api_name, self._answers, self._options, cause)


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _trace_connection(step: WireStep, address: str, began: float | None, reason: str = "") -> None:
    elapsed_ms = None if began is None else (time.monotonic() - began) * 1000
    trace.emit(WireEvent(step, address, elapsed_ms=elapsed_ms, reason=reason))


def _new_memory(size: int) -> memoryview:
    return memoryview(bytearray(size))


def wait_readable(connections: Sequence[Connection], timeout_s: float, others: Sequence[int] = ()) -> list[Connection]:
    """Wait until bytes (or the end of the stream) arrive on one of the connections; does not read them.

    Args:
        connections: open ones.
        timeout_s: how long to wait; infinity for ever.
        others: descriptors that end the wait, too, when there is something to read.

    Returns:
        Those with something to read, in the order given; none when the time is over.

    Raises:
        TransportError: one of them is closed.
    """
    by_descriptor: dict[int, Connection] = {}
    pending: list[Connection] = []
    # poll, not select: select cannot watch descriptors above 1023.
    poller = select.poll()
    for connection in connections:
        sock = connection._open_socket()  # noqa: SLF001 - part of the class's own module
        if isinstance(sock, ssl.SSLSocket) and sock.pending():
            pending.append(connection)
        by_descriptor[sock.fileno()] = connection
        poller.register(sock, select.POLLIN)
    if pending:
        return pending
    for descriptor in others:
        poller.register(descriptor, select.POLLIN)
    # Rounded up: poll counts in whole milliseconds, and 0 would not wait.
    wait_ms = None if timeout_s == math.inf else math.ceil(timeout_s * 1000)
    ready = {descriptor for descriptor, _ in poller.poll(wait_ms)}
    return [connection for descriptor, connection in by_descriptor.items() if descriptor in ready]
