"""A new token for a login: from an OAuth server, a file, a function, or from claims without a signature."""

from __future__ import annotations

import base64
import importlib
import json
import math
import os
import stat
import time
from concurrent.futures import wait
from typing import TYPE_CHECKING, Any

from pyspark_kafka._base.threads import begin
from pyspark_kafka._client.client.login.tokens.claims import MAX_TOKEN_LENGTH, check_bearer, parse_claims
from pyspark_kafka._client.client.login.tokens.token import Claims, Token, as_time, token_invalid
from pyspark_kafka._client.options import Secret, TokenEndpoint, TokenFile, TokenFunction, check_reference
from pyspark_kafka.errors import OptionError, described

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka._client.options import OAuthLogin, UnsignedToken

_FUNCTION_OPTION = "kafka.sasl.oauthbearer.token.callable"
_URL_OPTION = "kafka.sasl.oauthbearer.token.endpoint.url"
# Greater numbers of ms are not lifetimes, of 3 years and more, but times since 1970.
_MAX_LIFETIME_MS = 1e11
_CLOCKS = "Compare the clock of this machine with the clock of the OAuth server (NTP)."


def fetch_token(login: OAuthLogin, deadline: Deadline, clock: Callable[[], float] = time.time) -> Token:
    """Return a new token.

    Runs on: driver and executor; blocks, for an OAuth server and for a function.

    Args:
        login: where it comes from, and the names of its claims.
        deadline: for all of it.
        clock: seconds since 1970; tests pass their own.

    Raises:
        AccessError: the server refused, or the token is malformed or has expired.
        OptionError: the file cannot be read, or the function failed (`TOKEN_UNAVAILABLE`); or the administrator of
            this process allows neither (`REFERENCE_NOT_ALLOWED`).
        TransportError: the server cannot be reached.
        DeadlineError: the function did not return.
    """
    source = login.source
    if isinstance(source, TokenEndpoint):
        # http.client and all it brings: most queries have no endpoint.
        from pyspark_kafka._client.client.login.tokens.endpoint import request_token, shown_endpoint  # noqa: PLC0415

        return _checked(request_token(source, deadline), f"The token of {shown_endpoint(source)}", login, clock())
    if isinstance(source, TokenFile):
        check_reference("file", source.path, _URL_OPTION)
        return _checked(_read_file(source.path), f"The token of the file '{source.path}'", login, clock())
    if isinstance(source, TokenFunction):
        check_reference("call", source.name, _FUNCTION_OPTION)
        return _called(source.name, login, deadline, clock)
    return _unsigned(source, clock())


def _checked(raw: str, where: str, login: OAuthLogin, now: float) -> Token:
    """Return the token with its claims, if a broker could accept it now."""
    try:
        claims = parse_claims(raw, scope_claim=login.scope_claim, sub_claim=login.sub_claim)
    except ValueError as error:
        reason = str(error)
    else:
        _check_time(claims.expires_at, claims.issued_at, where, now)
        return Token(Secret(raw), now, claims.expires_at, claims)
    raise token_invalid(where, reason, "Let the OAuth server make JSON Web Tokens with the claims exp and sub.")


def _check_time(expires_at: float | None, issued_at: float | None, where: str, now: float) -> None:
    if expires_at is None or now < expires_at:
        return
    issued = f", was issued at {as_time(issued_at)}" if issued_at is not None else ""
    reason = f"expired at {as_time(expires_at)}{issued}; the clock of this machine says {as_time(now)}"
    raise token_invalid(where, reason, f"Get a new token. {_CLOCKS}")


def _read_file(path: str) -> str:
    reason = ""
    data = b""
    try:
        # Opening a pipe without a writer would wait for one.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                data = file.read(MAX_TOKEN_LENGTH + 3)
            else:
                reason = "it is not a regular file"
    except OSError as error:
        reason = error.strerror or type(error).__name__
    if reason:
        raise OptionError(
            f"The token of the file '{path}' (option '{_URL_OPTION}') cannot be read: {reason}. No connection was "
            "made.",
            condition="TOKEN_UNAVAILABLE",
            hint="Name a file that the driver and every executor can read, by its full path.",
            parameters={"option": _URL_OPTION, "path": path},
        )
    # What is not ASCII becomes a character that no token has.
    return data.decode("ascii", "replace").strip()


def _called(name: str, login: OAuthLogin, deadline: Deadline, clock: Callable[[], float]) -> Token:
    where = f"The token of the function '{name}'"
    found, failure = _run(name, deadline)
    if failure:
        raise OptionError(
            f"{where} (option '{_FUNCTION_OPTION}') cannot be had: {failure}. No connection was made.",
            condition="TOKEN_UNAVAILABLE",
            hint="Correct the function, and install its package on the driver and on every executor.",
            parameters={"option": _FUNCTION_OPTION},
        )
    lifetime_ms: Any = None
    if isinstance(found, (tuple, list)) and len(found) == 2:
        found, lifetime_ms = found
    if not isinstance(found, str):
        raise token_invalid(
            where, f"is {described(found)}", "Let the function return a str, or a pair of it and a lifetime in ms."
        )
    now = clock()
    expires_at = _end_of(lifetime_ms, where, now)
    try:
        check_bearer(found)
    except ValueError as error:
        reason = str(error)
    else:
        claims = _claims_if_any(found, login)
        if expires_at is None and claims is not None:
            expires_at = claims.expires_at
        _check_time(expires_at, claims.issued_at if claims else None, where, now)
        return Token(Secret(found), now, expires_at, claims)
    raise token_invalid(where, reason, "Let the function return the token alone.")


def _end_of(lifetime_ms: Any, where: str, now: float) -> float | None:
    if lifetime_ms is None:
        return None
    is_number = isinstance(lifetime_ms, int | float) and not isinstance(lifetime_ms, bool)
    if not is_number or not math.isfinite(lifetime_ms) or not 0 < lifetime_ms < 1e15:
        hint = "Let the function return a positive number of ms beside the token."
        raise token_invalid(where, "has no lifetime in ms", hint)
    seconds = float(lifetime_ms) / 1000
    return seconds if lifetime_ms > _MAX_LIFETIME_MS else now + seconds


def _claims_if_any(token: str, login: OAuthLogin) -> Claims | None:
    """Return the claims; None of a token that only the broker can read, such as a token of Amazon MSK."""
    try:
        return parse_claims(token, scope_claim=login.scope_claim, sub_claim=login.sub_claim)
    except ValueError:
        return None


def _run(name: str, deadline: Deadline) -> tuple[Any, str]:
    """Call a function by its name; return what it returned, or why there is nothing."""

    def call() -> Any:
        module, _, names = name.partition(":")
        function: Any = importlib.import_module(module)
        for each in names.split("."):
            function = getattr(function, each)
        return function()

    begun = begin(call, "token function")
    wait([begun], deadline.remaining_s())
    if not begun.done():
        raise deadline.error(f"The function '{name}' of option '{_FUNCTION_OPTION}'")
    # Whatever a user's function raises, and sys.exit() too; not its message, which may have the token.
    error = begun.exception()
    if error is None:
        return begun.result(), ""
    reached = f"; there is no {error.name!r}" if isinstance(error, (ImportError, AttributeError)) else ""
    return None, f"it raised {type(error).__name__}{reached}"


def _unsigned(source: UnsignedToken, now: float) -> Token:
    """Return a token without a signature.

    Source: RFC 7519, chapter 6; Java's `OAuthBearerUnsecuredLoginCallbackHandler`.
    """
    expires_at = now + source.lifetime_s
    claims: dict[str, Any] = {"iat": round(now, 3), "exp": round(expires_at, 3), **dict(source.claims)}
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({"alg": "none"}, claims)
    ]
    return Token(
        Secret(".".join(parts) + "."), now, expires_at, Claims(subject=str(claims["sub"]), expires_at=expires_at)
    )
