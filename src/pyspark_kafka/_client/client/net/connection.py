"""One connection to one broker: requests sent ahead, responses received in order.

`handshake.open_connection` makes one. Which broker to use, when to retry, and what an error code in a response means is
decided by the callers.
"""

from __future__ import annotations

import math
import ssl
import time
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark_kafka._client.client.net import trace
from pyspark_kafka._client.client.net.buffers import FrameBuffers
from pyspark_kafka._client.client.net.client_id import current_client_id
from pyspark_kafka._client.client.net.errors import (
    closed_by_broker,
    forgotten,
    lost,
    session_ended,
    session_not_renewed,
    silent,
)
from pyspark_kafka._client.client.net.frame_stream import NOT_YET, EndOfStreamError, FrameStream, keeps_arriving
from pyspark_kafka._client.client.net.idleness import IDLE_S, IDLE_TIMES, doubt_after_s
from pyspark_kafka._client.client.net.polling import wait_readable
from pyspark_kafka._client.client.tls.handshake import first_read_failed
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.client.waiting.stalls import contact_of
from pyspark_kafka._client.client.wire.api_versions import ApiVersions
from pyspark_kafka._client.client.wire.framed_request import FramedRequest
from pyspark_kafka._client.client.wire.frames import (
    DECODED_LIMIT_BYTES,
    FRAME_LIMIT_BYTES,
    HEADER_BYTES,
    parse_response_header,
)
from pyspark_kafka._client.client.wire.messages import ApiVersionsRequest
from pyspark_kafka._client.client.wire.nulls import refuse_nulls
from pyspark_kafka.errors import ConnectorError, DeadlineError, ProtocolError, TransportError

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from pyspark_kafka._client.client.net.login_session import LoginSession
    from pyspark_kafka._client.options import ConnectionOptions

_SLOW_HINT = (
    "Check how fast the network to this broker is, and whether it loses packets. If it is slow, raise option "
    "'kafka.default.api.timeout.ms'."
)
_API_VERSIONS_KEY = ApiVersionsRequest.API_KEY


class _SentRequest(NamedTuple):
    """A request whose response is pending; `traced` if the wire trace was on when it was sent.

    The response usually begins with `header`; a flexible one may have tagged fields. It has at most `limit_bytes`.
    """

    correlation_id: int
    api_name: str
    api_version: int
    header: bytes
    decode: Callable[[memoryview, int], Any]
    sent_at: float
    traced: bool
    limit_bytes: int


class Connection:
    """A connection to one broker.

    Requests may be sent ahead; responses are received in the order sent. Any failure to send or receive closes the
    connection: what became of requests in flight is then unknown. For one thread at a time.

    Runs on: driver and executor; methods that take a deadline block. Does not pickle.

    Attributes:
        host: the name it was opened with.
        port: the port it was opened with.
        address: `host:port`, as errors say it.
        versions: what the broker offers.
        session: for how long the login counts; None if it does not end, or there was none.
        renew: logs in again, on this connection; None without a login.
        doubt_at: when silence means that the network has forgotten the connection, which `give_up` tells; infinite if a
            response came since it was idle. Seconds of the monotonic clock, brokers' own waits not included.
        cut_off: whether it failed in the middle of a response.
    """

    def __init__(
        self, sock: socket.socket, host: str, port: int, options: ConnectionOptions, buffers: FrameBuffers | None = None
    ) -> None:
        """Take over a connected socket, encrypted if it is to be; use `handshake.open_connection`."""
        self.host = host
        self.port = port
        self.address = address_of(host, port)
        self.versions = ApiVersions()
        self.session: LoginSession | None = None
        self.renew: Callable[[Connection, Deadline], None] | None = None
        self.cut_off = False
        self._options = options
        self._stream: FrameStream | None = FrameStream(sock, self.address)
        self._in_flight: deque[_SentRequest] = deque()
        self._limit_bytes = FRAME_LIMIT_BYTES
        self._correlation_id = 0
        self._responses = 0
        self.doubt_at = math.inf
        self._heard_at = time.monotonic()
        self._was_lent = False
        self._contact = contact_of(options.bootstrap_servers)
        self._buffers = buffers if buffers is not None else FrameBuffers()

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{len(self._in_flight)} in flight"
        return f"Connection({self.address}, {state})"

    @property
    def closed(self) -> bool:
        """Whether it can no longer be used."""
        return self._stream is None

    @property
    def in_flight(self) -> int:
        """The number of requests in flight."""
        return len(self._in_flight)

    @property
    def arrived(self) -> int:
        """The number of bytes of the next, incomplete response."""
        return 0 if self._stream is None else self._stream.arrived

    @property
    def features(self) -> dict[str, int]:
        """The level of each feature that the cluster has settled on, by name (KIP-584)."""
        return self.versions.features

    @property
    def idle_and_alive(self) -> bool:
        """Whether a new conversation can start: open, nothing in flight, not ended by the broker, session not old.

        Costs one system call.
        """
        return (self.session is None or not self.session_is_old) and self._is_silent()

    @property
    def session_is_old(self) -> bool:
        """Whether the login is to be repeated before the next request, once nothing is in flight (KIP-368)."""
        return self.session is not None and self.session.is_old(time.monotonic())

    @property
    def renewable(self) -> bool:
        """Whether the login can be repeated here: alive, nothing in flight, and the broker accepts it by now.

        Costs one system call.
        """
        if self.renew is None or self.session is None or not self.session.may_renew(time.monotonic()):
            return False
        return self._is_silent()

    @property
    def heard_at(self) -> float:
        """The time of the last response, or else of the opening."""
        return self._heard_at

    @property
    def was_idle(self) -> bool:
        """Whether it was idle for so long that the network may have forgotten it; nothing is in flight."""
        return time.monotonic() - self._heard_at >= IDLE_S

    def rest(self) -> None:
        """Record that the connection is idle now."""
        self._was_lent = True

    @property
    def has_begun(self) -> bool:
        """Whether a part of the next response has arrived."""
        return self._stream is not None and self._stream.has_begun

    def give_up(self) -> TransportError:
        """Close, because of silence after an idle time; return why.

        This cluster's connections with as long an idle time are not used again.
        """
        IDLE_TIMES.note_forgotten(self._options, self._heard_at)
        idle_s = (self._in_flight[0].sent_at if self._in_flight else time.monotonic()) - self._heard_at
        error = forgotten(self.address, idle_s)
        if self._in_flight:
            self._fail(error, self._in_flight[0])
        self.close()
        return error

    def _is_silent(self) -> bool:
        """Return whether it is open, was not idle for too long, and has nothing to read and nothing in flight."""
        if self._stream is None or self._in_flight or not IDLE_TIMES.allow(self._options, self._heard_at):
            return False
        # Readable with nothing in flight: the end of the stream, or bytes without a request.
        return not self.readable(0.0)

    def readable(self, timeout_s: float) -> bool:
        """Return whether bytes (or the end of the stream) arrive within the time; does not read them."""
        return bool(wait_readable([self], timeout_s))

    def open_socket(self) -> socket.socket:
        """Return the socket, to wait for it.

        Raises:
            TransportError: the connection is closed.
        """
        return (self._stream or self._open_stream()).sock

    def limit_responses(self, limit_bytes: int = FRAME_LIMIT_BYTES) -> None:
        """Refuse larger responses from now on; by default only larger than any broker sends to their requests."""
        self._limit_bytes = limit_bytes

    def supports(self, request_class: Any, min_version: int = 0) -> bool:
        """Return whether broker and client share a version of this request that is not below `min_version`."""
        shared = self.versions.shared(request_class)
        return shared is not None and shared[1] >= min_version

    def api_version(self, request_class: Any, *, max_version: int | None = None) -> int:
        """Return the version that a request of this class is sent in; see `ApiVersions.newest`.

        Raises:
            ProtocolError: broker and client share no version.
        """
        return self.versions.newest(request_class, self.address, max_version=max_version)

    # -- sending

    def send_request(self, request: Any, *, max_version: int | None = None, timeout_ms: float | None = None) -> int:
        """Send a request in the negotiated version without waiting for its response.

        If nothing is in flight and the session of the login is old, the login is repeated first, which waits for
        responses.

        Args:
            request: a `FramedRequest`, or an instance of a class of `client.wire.messages` with no version set.
            max_version: an upper bound for the version.
            timeout_ms: longest wait for the socket to take the bytes; None takes `request_timeout_ms`.

        Returns:
            The version it was sent in.

        Raises:
            TransportError: the connection is lost; it is closed.
            DeadlineError: the broker does not take the bytes; the connection is closed.
            ProtocolError: no common version.
        """
        if self.session is not None and not self._in_flight and self.session_is_old:
            self._renew_session(timeout_ms)
        version = self.versions.newest(request, self.address, max_version=max_version)
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        client_id = self._options.client_id or current_client_id()
        if isinstance(request, FramedRequest):
            pieces = request.build(version, self._correlation_id, client_id)
            flexible, has_response = version >= request.first_flexible_version, request.has_response
            limit_bytes = FRAME_LIMIT_BYTES
            decode: Callable[[memoryview, int], Any] = request.decode_response
        else:
            request.API_VERSION = version
            request.with_header(correlation_id=self._correlation_id, client_id=client_id)
            pieces = [request.encode(framed=True, header=True)]
            flexible, has_response = request.flexible_version_q(version), request.expect_response()
            response_class = request.header.get_response_class()
            limit_bytes = DECODED_LIMIT_BYTES

            def decode(body: memoryview, version: int) -> Any:
                response = response_class.decode(body)
                refuse_nulls(response, version)
                return response

        # The one response whose header is never flexible, so that every client can read it (KIP-511).
        flexible = flexible and request.API_KEY != _API_VERSIONS_KEY
        header = self._correlation_id.to_bytes(4, "big") + (b"\0" if flexible else b"")
        began, traced = time.monotonic(), trace.is_on()
        if not self._in_flight:
            self.doubt_at = began + doubt_after_s(began - self._heard_at, was_lent=self._was_lent)
            self._was_lent = False
        sent = _SentRequest(self._correlation_id, request.name, version, header, decode, began, traced, limit_bytes)
        budget_ms = self._options.request_timeout_ms if timeout_ms is None else timeout_ms
        try:
            (self._stream or self._open_stream()).send_pieces(pieces, budget_ms / 1000)
        except OSError as error:
            failure: ConnectorError = lost(self.address, "while a request was sent", error)
            if isinstance(error, TimeoutError):
                failure = Deadline(budget_ms, began=began).error(f"Sending a request to {self.address}", error)
            self._fail(failure, sent)
            raise failure from error
        except BaseException as error:
            # Also on an interrupt: after half a frame, no other can follow.
            self._fail(error, sent)
            raise
        if traced:
            trace.request_sent(self.address, request, version, self._correlation_id, pieces)
        if has_response:
            self._in_flight.append(sent)
        return version

    def _renew_session(self, timeout_ms: float | None) -> None:
        """Log in again before the session ends; without effect on a session too young for it.

        Raises:
            TransportError: the broker did not accept it; the connection is closed, and a new one may be accepted.
        """
        session = self.session
        if self.renew is None or session is None or not session.may_renew(time.monotonic()):
            return
        # Its own requests are sent as they are.
        self.session = None
        try:
            self.renew(self, Deadline(self._options.request_timeout_ms if timeout_ms is None else timeout_ms))
        except ConnectorError as error:
            self.close()
            raise session_not_renewed(self.address, error) from error
        except BaseException:
            self.close()
            raise

    def call(self, request: Any, deadline: Deadline, *, max_version: int | None = None) -> Any:
        """Send a request and wait for its response; nothing else may be in flight.

        The wait is bounded by `answer_timeout_ms` too; while bytes of the response arrive, only by the deadline.

        Raises:
            TransportError: the connection is lost; it is closed.
            DeadlineError: no response in time; the connection is closed.
            ProtocolError: no common version, or the bytes are not the response.
        """
        if self._in_flight:
            raise ProtocolError(
                f"A call on the connection to {self.address} would mix with {len(self._in_flight)} requests in flight.",
                condition="CONNECTION_BUSY",
                hint="This is a defect of this package; please report it.",
                parameters={"broker": self.address},
            )
        step = deadline.within(self._options.answer_timeout_ms)
        self.send_request(request, max_version=max_version, timeout_ms=step.remaining_s() * 1000)
        return self.receive(step, limit=deadline)

    # -- receiving

    def receive(
        self,
        deadline: Deadline | None,
        *,
        limit: Deadline | None = None,
        turn_s: float = math.inf,
        until: Deadline | None = None,
        reuse: bool = False,
    ) -> Any:
        """Receive the response to the oldest request in flight and decode it.

        Args:
            deadline: for all of it; None takes what has arrived, without waiting.
            limit: up to this end, the deadline moves on by its own length for as long as bytes arrive.
            turn_s: the longest wait of this call, however steadily bytes arrive.
            until: another end of the wait of this call; None for none.
            reuse: whether its memory is used again once no view of it is alive.

        Returns:
            The decoded response; None if it is not complete, and only the wait of this call is over. What has arrived
            is kept for the next call.

        Raises:
            TransportError: the connection is lost; it is closed.
            DeadlineError: no response in time; the connection is closed.
            ProtocolError: the bytes are not the response; the connection is closed.
        """
        if not self._in_flight:
            raise ProtocolError(
                f"No request to {self.address} is in flight, so no response can be received.",
                condition="NOTHING_IN_FLIGHT",
                hint="This is a defect of this package; please report it.",
                parameters={"broker": self.address},
            )
        sent = self._in_flight[0]
        stream = self._stream or self._open_stream()
        start = len(sent.header)
        window_ms, before = (0.0, 0) if deadline is None or limit is None else (deadline.timeout_ms, stream.arrived)
        while True:
            try:
                stream.limit_bytes = min(self._limit_bytes, sent.limit_bytes)
                frame = stream.receive(self._buffers.take_buffer if reuse else None, deadline, turn_s, until)
                if frame[:start] != sent.header:
                    start = self._body_start(frame, sent)
                break
            except NOT_YET as error:
                if deadline is None or ((turn_s < math.inf or until is not None) and not deadline.expired):
                    return None
                if limit is not None and not limit.expired and keeps_arriving(stream.arrived - before, window_ms / 1e3):
                    before, deadline = stream.arrived, deadline.moved_on(window_ms, limit)
                    continue
                late = self._no_response(sent, deadline, TimeoutError(stream.progress))
                self._fail(late, sent)
                raise late from error
            except OSError as error:
                failure = self._lost(sent, error)
                self._fail(failure, sent)
                raise failure from (None if isinstance(error, EndOfStreamError) else error)
            except BaseException as error:
                # Also on an interrupt: after half a frame, nothing else can be read.
                self._fail(error, sent)
                raise
        self._in_flight.popleft()
        self._responses += 1
        self.doubt_at = math.inf
        self._heard_at = time.monotonic()
        self._contact.address, self._contact.at = self.address, self._heard_at
        if sent.traced:
            self._trace_response(trace.WireStep.RECEIVED, sent, size=len(frame))
        try:
            return sent.decode(frame[start:], sent.api_version)
        except ConnectorError as error:
            self._fail(error, sent)
            raise
        except Exception as error:
            # Decoders raise whatever their parsing meets: struct.error, IndexError, UnicodeError, …
            failure = ProtocolError(
                f"The response of {self.address} to {sent.api_name} version {sent.api_version} ({len(frame)} bytes) "
                f"cannot be decoded: {type(error).__name__}: {error}. The connection was closed.",
                condition="RESPONSE_INVALID",
                parameters={"broker": self.address, "request": sent.api_name, "version": sent.api_version},
            )
            self._fail(failure, sent)
            raise failure from error

    def _body_start(self, frame: memoryview, sent: _SentRequest) -> int:
        """Return where the body of a response begins whose header is not the usual one."""
        flexible = len(sent.header) > HEADER_BYTES
        correlation_id, start = parse_response_header(frame, flexible=flexible, address=self.address)
        if correlation_id != sent.correlation_id:
            raise ProtocolError(
                f"{self.address} sent the response to request {correlation_id} where that to request "
                f"{sent.correlation_id} ({sent.api_name}) was due. The connection was closed.",
                condition="CORRELATION_ID_MISMATCH",
                parameters={"broker": self.address, "expected": sent.correlation_id, "found": correlation_id},
            )
        return start

    def _lost(self, sent: _SentRequest, error: OSError) -> ConnectorError:
        """Return the error of a connection loss during a pending response."""
        if isinstance(error, EndOfStreamError):
            return self._closed_by_broker(sent)
        if isinstance(error, ConnectionResetError):
            return self._closed_by_broker(sent, error)
        if isinstance(error, ssl.SSLError) and not self._responses:
            # With TLS 1.3 a refused client certificate shows here, after a handshake that seemed to succeed.
            return first_read_failed(self.address, self._options, error)
        return lost(self.address, f"while the response to {sent.api_name} was pending", error)

    def _no_response(self, sent: _SentRequest, deadline: Deadline, error: BaseException) -> DeadlineError:
        if self._responses or self._options.uses_tls or self.has_begun:
            late = deadline.error(f"Waiting for the response of {self.address} to {sent.api_name}", error)
            if self.has_begun:
                late.change_hint(_SLOW_HINT)
            return late
        return silent(self.address, sent.api_name, deadline, self._options.security_protocol)

    def _closed_by_broker(self, sent: _SentRequest, cause: OSError | None = None) -> TransportError:
        if self.session is not None and self.session.has_ended(time.monotonic()):
            return session_ended(self.address, sent.api_name)
        if self.has_begun:
            return lost(self.address, f"in the middle of the response to {sent.api_name}", cause)
        return closed_by_broker(self.address, sent.api_name, self._responses, self._options, cause)

    # -- the end

    def close(self) -> None:
        """Close the socket; requests in flight get no response. Safe to call again."""
        stream, self._stream = self._stream, None
        if stream is not None:
            if trace.is_on():
                pending = f"{len(self._in_flight)} in flight" if self._in_flight else ""
                trace.connection_changed(trace.WireStep.CLOSED, self.address, reason=pending)
            stream.close()
        self._in_flight.clear()

    def _fail(self, error: BaseException, sent: _SentRequest) -> None:
        """Close because a request failed."""
        self.cut_off = self.has_begun
        if trace.is_on():
            self._trace_response(trace.WireStep.FAILED, sent, reason=trace.reason_of(error))
        self.close()

    def _trace_response(self, step: trace.WireStep, sent: _SentRequest, size: int = 0, reason: str = "") -> None:
        trace.request_ended(
            step,
            self.address,
            sent.api_name,
            sent.api_version,
            sent.correlation_id,
            sent.sent_at,
            size,
            reason,
        )

    def _open_stream(self) -> FrameStream:
        if self._stream is None:
            raise TransportError(
                f"The connection to {self.address} is closed.",
                condition="CONNECTION_CLOSED",
                retriable=True,
                parameters={"broker": self.address},
            )
        return self._stream


def address_of(host: str, port: int) -> str:
    """Return `host:port`, as errors say it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
