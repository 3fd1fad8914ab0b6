"""Opening a connection: address by address TCP, TLS, version negotiation and SASL."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.login.exchange import authenticate
from pyspark_kafka._client.client.net import trace
from pyspark_kafka._client.client.net.connection import Connection, address_of
from pyspark_kafka._client.client.net.idleness import SILENT_S
from pyspark_kafka._client.client.net.login_session import AcceptedLogins, LoginSession
from pyspark_kafka._client.client.net.tcp import connect, resolve
from pyspark_kafka._client.client.tls.contexts import tls_context
from pyspark_kafka._client.client.tls.handshake import encrypt
from pyspark_kafka._client.client.wire.api_versions import ApiVersions
from pyspark_kafka._client.client.wire.error_codes import ErrorCode, broker_error
from pyspark_kafka._client.client.wire.messages import ApiVersionsRequest
from pyspark_kafka.errors import ConnectorError, DeadlineError, TransportError
from pyspark_kafka.version import __version__

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from pyspark_kafka._client.client.net.buffers import FrameBuffers
    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka._client.options import ConnectionOptions

    Watch = Callable[[socket.socket], None]

_CLIENT_NAME = "pyspark-kafka"
# Memory for a response is taken when its size is announced. Who has not shown yet that it is a broker, and in which the
# login trusts, gets no more: versions take some 2 kB, tickets of Kerberos up to 64 kB.
_GREETING_BYTES = 1 << 20
_ACCEPTED = AcceptedLogins()


def open_connection(
    host: str,
    port: int,
    options: ConnectionOptions,
    deadline: Deadline,
    *,
    buffers: FrameBuffers | None = None,
    watch: Watch | None = None,
) -> Connection:
    """Connect, encrypt, negotiate versions and authenticate.

    All addresses of the name are tried, each for at most `connect_timeout_ms`; also those after an address that accepts
    the connection and fails in a later step.

    Runs on: driver and executor; blocks.

    Args:
        host: the broker's name.
        port: the broker's port.
        options: security, timeouts, socket buffers.
        deadline: for all of it.
        buffers: receive buffers for raw responses, shared with other connections of the same user; None makes some.
        watch: called with every socket before it blocks, so that another thread can end the wait by shutting it down.

    Raises:
        TransportError: the broker cannot be reached, or closed the connection.
        DeadlineError: no response in time.
        AccessError: credentials refused.
        ProtocolError: the other side does not speak Kafka's protocol.
        OptionError: TLS files or the SASL mechanism cannot be used.
    """
    began = time.monotonic()
    try:
        connection = _open(host, port, options, deadline, buffers, watch)
    except BaseException as error:
        if trace.is_on():
            step, reason = trace.WireStep.FAILED, trace.reason_of(error)
            trace.connection_changed(step, address_of(host, port), began=began, reason=reason)
        raise
    if trace.is_on():
        trace.connection_changed(trace.WireStep.OPENED, connection.address, began=began)
    return connection


def _open(
    host: str,
    port: int,
    options: ConnectionOptions,
    deadline: Deadline,
    buffers: FrameBuffers | None,
    watch: Watch | None,
) -> Connection:
    # Fails before a connection is made if the files are wrong.
    context = tls_context(options.tls) if options.uses_tls else None
    addresses = resolve(host, port)
    failed: ConnectorError | None = None
    while True:
        share = deadline.within(deadline.remaining_s() * 1000 / len(addresses))
        try:
            sock, address = connect(f"{host}:{port}", addresses, options, deadline, watch)
        except (TransportError, DeadlineError) as error:
            # The failure on an address that could be reached says more.
            raise (failed or error) from error
        step = share.within(options.connect_timeout_ms)
        try:
            if context is not None:
                sock = encrypt(sock, context, host, address_of(host, port), options, step, watch)
            return _greet(Connection(sock, host, port, options, buffers), options, step)
        except (TransportError, DeadlineError) as error:
            addresses.remove(address)
            if not error.retriable or not addresses or deadline.expired:
                raise
            failed = error


def _greet(connection: Connection, options: ConnectionOptions, deadline: Deadline) -> Connection:
    """Negotiate versions and authenticate; closes the connection if that fails."""
    try:
        connection.limit_responses(_GREETING_BYTES)
        connection.versions = negotiate_versions(connection, deadline)
        if options.uses_sasl:
            _log_in(connection, options, deadline)
            connection.renew = lambda same, until: _log_in(same, options, until)
        connection.limit_responses()
    except BaseException:
        connection.close()
        raise
    return connection


def renew_or_open(
    old: Connection,
    options: ConnectionOptions,
    deadline: Deadline,
    *,
    buffers: FrameBuffers | None = None,
    watch: Watch | None = None,
) -> Connection:
    """Log in again on a connection whose session is old, or see that an idle one is alive; else open another.

    Brokers refuse to change the user of a connection, and some do not support a second login: a new connection tells
    whether the credentials are good.

    Runs on: driver and executor; blocks.

    Args:
        old: with nothing in flight.
        options: as for `open_connection`, as the others and the errors are.
        deadline: for all of it.
        buffers: of the new connection.
        watch: called with every socket before it blocks.

    Source: KIP-368.
    """
    try:
        if watch is not None:
            watch(old.open_socket())
        if old.session_is_old and not old.was_idle:
            _log_in(old, options, deadline.within(options.connect_timeout_ms))
        elif old.session_is_old or not is_alive(old, deadline):
            old.close()
            return open_connection(old.host, old.port, options, deadline, buffers=buffers, watch=watch)
    except ConnectorError:
        old.close()
        return open_connection(old.host, old.port, options, deadline, buffers=buffers, watch=watch)
    except BaseException:
        old.close()
        raise
    return old


def _log_in(connection: Connection, options: ConnectionOptions, deadline: Deadline) -> None:
    """Authenticate, and note for how long that counts."""
    connection.session = None
    # The same name and password may be good in one cluster and not in another.
    known_as = options.bootstrap_servers, options.login
    began_at = time.monotonic()
    try:
        lifetime_ms = authenticate(connection, connection.host, options.login, deadline)
    except ConnectorError as error:
        explained = _ACCEPTED.explain(known_as, error)
        if explained is error:
            raise
        raise explained from error
    _ACCEPTED.note(known_as)
    connection.session = LoginSession.of(lifetime_ms, began_at)


def is_alive(idle: Connection, deadline: Deadline) -> bool:
    """Return whether a broker still responds on an idle connection; if it does not, the connection is closed.

    For requests that must not be sent twice: nothing but a question for versions is sent.

    Runs on: driver and executor; blocks for a round trip, at most 1 s.
    """
    try:
        request = ApiVersionsRequest(client_software_name=_CLIENT_NAME, client_software_version=__version__)
        idle.send_request(request, timeout_ms=SILENT_S * 1000)
        if idle.readable(min(SILENT_S, deadline.remaining_s())):
            idle.receive(deadline.within(SILENT_S * 1000))
            return True
        idle.give_up()
    except ConnectorError:
        idle.close()
    return False


def negotiate_versions(connection: Connection, deadline: Deadline) -> ApiVersions:
    """Return the broker's versions, requested in the newest version of that request that it supports."""
    version = ApiVersionsRequest.max_version
    while True:
        request = ApiVersionsRequest(client_software_name=_CLIENT_NAME, client_software_version=__version__)
        connection.send_request(request, max_version=version, timeout_ms=deadline.remaining_s() * 1000)
        response = connection.receive(deadline)
        offered = {entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys}
        if response.error_code == ErrorCode.NONE:
            # Only from version 3 on; older ones have none.
            features = {entry.name: entry.max_version_level for entry in response.finalized_features or ()}
            return ApiVersions(offered, features)
        # The refusal is written in version 0, and since Kafka 2.4 lists the versions that there are.
        fallback = min(offered.get(ApiVersionsRequest.API_KEY, (0, 0))[1], version - 1)
        if response.error_code != ErrorCode.UNSUPPORTED_VERSION or fallback < 0:
            raise broker_error(
                response.error_code,
                f"Asking {connection.address} for its API versions failed",
                broker=connection.address,
            )
        version = fallback
