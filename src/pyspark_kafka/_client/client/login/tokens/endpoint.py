"""Request a token from an OAuth server, with the client's id and secret.

Over https only, with a certificate that is checked for the host's name, without redirects and proxies: the secret goes
to the server that the option names, and nowhere else.

Source: RFC 6749, chapters 2.3.1, 4.4 and 5; KIP-768; Java's `HttpJwtRetriever`.
"""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import ssl
import threading
from http.client import HTTPException, HTTPSConnection
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus, urlencode, urlsplit

from pyspark_kafka._client.client.login.mechanism import shown
from pyspark_kafka._client.client.login.tokens.token import token_invalid
from pyspark_kafka._client.client.tls.contexts import tls_context
from pyspark_kafka._client.client.tls.errors import EXPIRED, NOT_YET_VALID, OTHER_ADDRESS, OTHER_NAME
from pyspark_kafka._client.client.waiting.retry import Backoff
from pyspark_kafka._client.client.wire.error_codes import ErrorCode
from pyspark_kafka._client.options import Revealed, TlsOptions
from pyspark_kafka.errors import AccessError, ConnectorError, TransportError
from pyspark_kafka.version import __version__

if TYPE_CHECKING:
    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka._client.options import Secret, TokenEndpoint

# A response has a token and some words.
_MAX_BODY = 1 << 18
# The request may succeed later; all other refusals are final.
_RETRIED = frozenset({408, 425, 429})
_URL_OPTION = "kafka.sasl.oauthbearer.token.endpoint.url"


def request_token(endpoint: TokenEndpoint, deadline: Deadline) -> str:
    """Return the token of a response; a request that fails for now is repeated until the deadline.

    Runs on: driver and executor; blocks.

    Args:
        endpoint: the server, and the maximum wait.
        deadline: for all attempts.

    Raises:
        AccessError: the server refused (`TOKEN_REFUSED`), or its response has no token (`TOKEN_INVALID`).
        TransportError: it cannot be reached, or is not to be trusted (`TOKEN_UNAVAILABLE`).
    """
    backoff = Backoff(endpoint.retry_backoff_ms, max(endpoint.retry_backoff_ms, endpoint.retry_backoff_max_ms))
    found: ConnectorError | None = None
    while True:
        try:
            return _attempt(endpoint, deadline)
        except ConnectorError as error:
            # An attempt that the deadline cuts short would hide what the one before it found.
            cut_short = error.retriable and deadline.expired
            found = found if found is not None and cut_short else error
            pause_s = backoff.next_s()
            if not error.retriable or deadline.remaining_s() <= pause_s:
                raise found from (error.__cause__ if found is error else error)
        deadline.pause(pause_s)


def _attempt(endpoint: TokenEndpoint, deadline: Deadline) -> str:
    secret = endpoint.client_secret.reveal()
    where = _where(endpoint)
    try:
        status, body = _post(endpoint, secret, deadline)
    except ssl.SSLCertVerificationError as error:
        hint = (
            "Set ssl.truststore.type=PEM and ssl.truststore.location in kafka.sasl.jaas.config to the authority of the "
            "token endpoint; kafka.ssl.truststore.location is only for the certificates of brokers."
        )
        if error.verify_code in (OTHER_NAME, OTHER_ADDRESS):
            hint = f"Use a name that the certificate holds in {_URL_OPTION}, or have it renewed with this name."
        elif error.verify_code in (EXPIRED, NOT_YET_VALID):
            hint = "Have the certificate of the token endpoint renewed, or correct the clock of this machine."
        reason = shown(error.verify_message).rstrip(".")
        raise _unavailable(
            f"{where} failed: its certificate was not accepted: {reason}", hint, retriable=False
        ) from error
    except (OSError, HTTPException) as error:
        reason = shown(str(error)) or "the connection ended"
        raise _unavailable(
            f"{where} failed: {type(error).__name__}: {reason}",
            f"Check {_URL_OPTION}, and that this machine reaches it: proxies of the environment are not used.",
        ) from error
    return read_answer(endpoint, status, body)


def read_answer(endpoint: TokenEndpoint, status: int, body: bytes) -> str:
    """Return the token of a response. Pure.

    Raises:
        AccessError: it is a refusal (`TOKEN_REFUSED`), or there is no token (`TOKEN_INVALID`).
        TransportError: the server failed for now, or redirects (`TOKEN_UNAVAILABLE`).
    """
    where = _where(endpoint)
    if status == 200:
        return _token_of(body, where)
    raise _refused(where, status, body, endpoint.client_secret)


def _post(endpoint: TokenEndpoint, secret: str, deadline: Deadline) -> tuple[int, bytes]:
    """Send one request; return status and body, which is at most one byte longer than is accepted."""
    parts = urlsplit(endpoint.url)
    form = {"grant_type": "client_credentials", **({"scope": endpoint.scope} if endpoint.scope else {})}
    headers = {
        "Authorization": _authorization(endpoint, secret),
        "Accept": "application/json",
        "Content-Type": "application/x-www-form-urlencoded",
        "User-Agent": f"pyspark-kafka/{__version__}",
        "Connection": "close",
    }
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection = HTTPSConnection(
        str(parts.hostname),
        parts.port or 443,
        timeout=min(endpoint.connect_timeout_ms / 1000, max(0.001, deadline.remaining_s())),
        context=tls_context(endpoint.tls or TlsOptions()).context,
    )
    # Timeouts of sockets are for one piece of bytes: a server that sends byte by byte would never end.
    was_cut = threading.Event()
    watchdog = threading.Timer(deadline.remaining_s(), _cut, (connection, was_cut))
    watchdog.daemon = True
    watchdog.start()
    try:
        connection.connect()
        if was_cut.is_set():
            # The watchdog met no socket that it could shut, and does not come again.
            raise TimeoutError("the connection was not made in time")
        connection.sock.settimeout(endpoint.read_timeout_ms / 1000)
        connection.request("POST", target, urlencode(form).encode(), headers)
        response = connection.getresponse()
        body = response.read(_MAX_BODY + 1)
    except OSError:
        # A certificate that is not accepted is a ValueError, too.
        raise
    except (AttributeError, ValueError) as error:
        # What http.client meets in a connection that was cut, or in a malformed number.
        raise HTTPException("the response is malformed, or did not end in time") from error
    finally:
        watchdog.cancel()
        connection.close()
    if was_cut.is_set():
        raise TimeoutError("the response did not end in time")
    return response.status, body


def _authorization(endpoint: TokenEndpoint, secret: str) -> Revealed:
    user, password = endpoint.client_id, secret
    if endpoint.urlencode_header:
        user, password = quote_plus(user), quote_plus(password)
    return Revealed("Basic " + base64.b64encode(f"{user}:{password}".encode()).decode())


def _cut(connection: HTTPSConnection, was_cut: threading.Event) -> None:
    was_cut.set()
    sock = connection.sock
    if sock is not None:
        with contextlib.suppress(OSError):
            # Not the method of the TLS socket, after which the other thread would continue unencrypted.
            socket.socket.shutdown(sock, socket.SHUT_RDWR)


def _token_of(body: bytes, where: str) -> str:
    found = _json(body)
    if len(body) > _MAX_BODY:
        reason = f"has more than {_MAX_BODY} bytes"
    elif found is None:
        reason = "is not a JSON object"
    else:
        # Java takes the second one, too, if the first is missing.
        token = found.get("access_token") or found.get("id_token")
        if isinstance(token, str) and token:
            return token
        reason = "has no access_token"
    raise token_invalid(f"{where} succeeded, but its response", reason, f"Check {_URL_OPTION}.")


def _json(body: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(body) if len(body) <= _MAX_BODY else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _refused(where: str, status: int, body: bytes, secret: Secret) -> ConnectorError:
    if status in _RETRIED or status >= 500:
        return _unavailable(f"{where} failed: it answered with HTTP status {status}", "Check the token endpoint.")
    if 300 <= status < 400:
        return _unavailable(
            f"{where} failed: it redirects (HTTP status {status}), which is not followed: the secret would leave",
            f"Set {_URL_OPTION} to the endpoint itself.",
            retriable=False,
        )
    said = _json(body) or {}
    # A server has no reason to repeat the secret; an error must not.
    kind, detail = (shown(secret.hidden_in(str(said.get(name) or ""))) for name in ("error", "error_description"))
    answered = f' and "{kind}"' if kind else ""
    explained = f': "{detail}"' if detail else ""
    return AccessError(
        f"{where} was refused with HTTP status {status}{answered}{explained}. No connection was made.",
        code=ErrorCode.SASL_AUTHENTICATION_FAILED,
        condition="TOKEN_REFUSED",
        hint=_refusal_hint(status, kind),
        parameters={"status": status, "error": kind},
    )


def _refusal_hint(status: int, kind: str) -> str:
    if kind == "invalid_scope":
        return "Set kafka.sasl.oauthbearer.scope to a scope that the server allows this client, or remove it."
    if kind in ("unauthorized_client", "unsupported_grant_type"):
        return "Allow the client the grant client_credentials at the OAuth server."
    if kind == "invalid_client" or status == 401:
        return (
            "Check kafka.sasl.oauthbearer.client.credentials.client.id and .client.secret; with special characters in "
            "them, try kafka.sasl.oauthbearer.header.urlencode=true."
        )
    if status in (404, 405):
        return f"Correct {_URL_OPTION}: it is probably not a token endpoint."
    return f"Check {_URL_OPTION}, the client's id and secret, and the scope."


def shown_endpoint(endpoint: TokenEndpoint) -> str:
    """Return the URL of an endpoint for errors: without its query, which may have a key in it."""
    parts = urlsplit(endpoint.url)
    return f"{parts.scheme}://{parts.netloc}{shown(parts.path)}"


def _where(endpoint: TokenEndpoint) -> str:
    return f"Getting a token from {shown_endpoint(endpoint)}"


def _unavailable(text: str, hint: str, *, retriable: bool = True) -> TransportError:
    return TransportError(
        f"{text}. No token, so no connection was made.", condition="TOKEN_UNAVAILABLE", hint=hint, retriable=retriable
    )
