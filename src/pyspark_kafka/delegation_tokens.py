"""Delegation tokens (KIP-48): a query logs in with a token that lasts for hours, and its tasks never see a password.

    from pyspark_kafka import delegation_tokens

    token = delegation_tokens.obtain(options)
    spark.readStream.format("pyspark_kafka").options(**delegation_tokens.query_options(options, token))

`options` are the options of a connection, `kafka.…`, with the credentials of the token's owner: they stay on the
driver. `keep` renews a token before it expires, and replaces it before it can be renewed no more; `from_spark` returns
the token that Spark's own provider has obtained. Runs on: driver.
See <https://pyspark-kafka.github.io/pyspark-kafka/delegation-tokens/>.
"""

from __future__ import annotations

import logging
import os
import tempfile
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark_kafka._base.threads import BackgroundLoop
from pyspark_kafka._client.client.admin.tokens import create_token, describe_tokens, expire_token, renew_token
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.login.delegation_token import DelegationToken, jaas_text
from pyspark_kafka._client.options import EVERYWHERE, OPTIONS, parse_write_options
from pyspark_kafka._connector.spark.token_provider import from_spark
from pyspark_kafka.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from pyspark_kafka._client.options import ConnectionOptions

__all__ = [
    "DelegationToken",
    "TokenKeeper",
    "describe",
    "expire",
    "from_spark",
    "keep",
    "obtain",
    "query_options",
    "renew",
]
__dir__ = __all__.copy

_LOG = logging.getLogger(__name__)

_PROTOCOL, _SERVERS = "kafka.security.protocol", "kafka.bootstrap.servers"
_MECHANISM, _JAAS = "kafka.sasl.mechanism", "kafka.sasl.jaas.config"
# Of the client's own certificate, which a query with a token does not need.
_OWN_CERTIFICATE = ("kafka.ssl.keystore.", "kafka.ssl.key.")
_SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
# As Spark's spark.security.credentials.renewalRatio.
_RENEWED_AT = 0.75
# A failed renewal is repeated after this share of the remaining time, but not sooner than that.
_AGAIN_AT, _AGAIN_S = 0.1, 0.1
# Of a token that lasts for centuries; Python waits for no longer than some of them.
_MAX_WAIT_S = 7 * 86_400.0
_STOP_S = 2.0


def obtain(
    options: Mapping[str, str], *, renewers: Sequence[str] = (), lifetime: timedelta | None = None
) -> DelegationToken:
    """Request a token for the options' user from the brokers.

    Runs on: driver; blocks until all reachable brokers accept the token.

    Args:
        options: of a connection, with a password, a ticket or a client certificate.
        renewers: principals that may renew it, such as `User:bob`; its owner may.
        lifetime: the maximum time with renewals; None for the brokers' bound (`delegation.token.max.lifetime.ms`).

    Raises:
        AccessError: this connection may not request tokens, or the brokers support none.
        OptionError: the options are not valid.

    Source: KIP-48; Java `Admin.createDelegationToken`.
    """
    with _client(options) as client:
        return create_token(client, renewers, _milliseconds(lifetime))


def renew(options: Mapping[str, str], token: DelegationToken, period: timedelta | None = None) -> DelegationToken:
    """Let a token expire later; return it with the new time. Connections and options that use it stay as they are.

    Runs on: driver; blocks.

    Args:
        options: of a connection of its owner or a renewer.
        token: not expired yet.
        period: from now on, up to the end of its lifetime; None takes the brokers' (`delegation.token.expiry.time.ms`).

    Raises:
        AccessError: it has expired, or the user may not renew it.
    """
    with _client(options) as client:
        return renew_token(client, token, _milliseconds(period))


def expire(options: Mapping[str, str], token: DelegationToken) -> DelegationToken:
    """Let a token expire at once: new connections with it are refused; return it with the new time.

    Runs on: driver; blocks.

    Raises:
        AccessError: it has expired already, or the user may not do this.
    """
    with _client(options) as client:
        return expire_token(client, token)


def describe(options: Mapping[str, str], owners: Sequence[str] | None = None) -> list[DelegationToken]:
    """Return the tokens of some owners, such as `User:alice`, or all, as far as the user may see them.

    Runs on: driver; blocks.
    """
    with _client(options) as client:
        return describe_tokens(client, owners)


def query_options(
    options: Mapping[str, str], token: DelegationToken | None = None, *, mechanism: str = "SCRAM-SHA-512"
) -> dict[str, str]:
    """Return the options of a query that logs in with a token: the options of the connection without credentials.

    Args:
        options: of the connection that obtained the token; what they say of TLS stays.
        token: whose key the options then hold; None leaves `kafka.sasl.jaas.config` out, for a file of `keep`.
        mechanism: SCRAM-SHA-512 or SCRAM-SHA-256, which the listener has to offer.

    Raises:
        OptionError: another mechanism: brokers take tokens with SCRAM only; or a `kafka.security.protocol` that is
            unknown, or given twice with different values.
    """
    if mechanism not in _SCRAM:
        raise OptionError(
            f"Delegation tokens work only with SCRAM, not with '{mechanism}'.",
            condition="OPTION_INVALID",
            hint="Use SCRAM-SHA-512 or SCRAM-SHA-256.",
        )
    kept = {
        name: value
        for name, value in options.items()
        if not name.strip().lower().startswith((_PROTOCOL, "kafka.sasl.", *_OWN_CERTIFICATE))
    }
    encrypted = _security_protocol(options).endswith("SSL")
    found = {**kept, _PROTOCOL: "SASL_SSL" if encrypted else "SASL_PLAINTEXT", _MECHANISM: mechanism}
    return found if token is None else {**found, _JAAS: jaas_text(token)}


def keep(
    options: Mapping[str, str],
    token: DelegationToken | None = None,
    *,
    file: Path | str | None = None,
    period: timedelta | None = None,
    lifetime: timedelta | None = None,
) -> TokenKeeper:
    """Keep a token valid for as long as the driver runs; see `TokenKeeper`.

    Runs on: driver; blocks until there is a token, then in a thread.

    Args:
        options: of a connection of its owner or a renewer.
        token: to be renewed; None obtains one.
        file: where its JAAS configuration is written. Queries read it again with the option
            `kafka.sasl.jaas.config=file:…` wherever they connect, so it has to be on a file system that all executors
            have.
        period: see `renew`.
        lifetime: see `obtain`.

    Raises:
        ConnectorError: no token can be obtained.
        OSError: the file cannot be written.
    """

    def renewed(old: DelegationToken) -> DelegationToken:
        return renew(options, old, period)

    def replaced() -> DelegationToken:
        return obtain(options, lifetime=lifetime)

    return TokenKeeper(replaced() if token is None else token, renewed, replaced, None if file is None else Path(file))


class TokenKeeper:
    """Renews a token in a thread of the driver, when three quarters of its time are over.

    Without a file that ends with the lifetime of the token, which a warning says. With a file, a new token is obtained
    before, and written there. Use as a context manager, or call `stop`.

    Args:
        token: the first one.
        renew: returns a token with a later expiry; raises ConnectorError.
        obtain: returns a new token; not called without a file.
        file: where the JAAS configuration of each token is written, for the owner of the file only.

    Attributes:
        token: as it is now.
    """

    def __init__(
        self,
        token: DelegationToken,
        renew: Callable[[DelegationToken], DelegationToken],
        obtain: Callable[[], DelegationToken],
        file: Path | None = None,
    ) -> None:
        self.token = token
        self._renew = renew
        self._obtain = obtain
        self._file = file
        if file is not None:
            _write(file, jaas_text(token))
        # A renewal that waits for brokers does not try again when the keeper is stopped.
        self._loop = BackgroundLoop(f"delegation token {token.token_id}", self._renew_or_replace, self._wait_s())
        self._loop.start()

    def __enter__(self) -> TokenKeeper:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Renew it no more; the token stays valid until it expires. Waits at most 2 s for a renewal in work."""
        # A search for brokers is not interrupted, and may take as long as kafka.default.api.timeout.ms.
        self._loop.end(_STOP_S)

    def _renew_or_replace(self) -> float | None:
        try:
            if not self._advance():
                return None
            return self._wait_s()
        except Exception as error:  # noqa: BLE001 - a renewal that ends unseen would end the queries later
            if self._loop.is_over:
                return None
            left_s = _left_s(self.token)
            _LOG.warning(
                "Delegation token %s, which expires in %.0f s, could not be renewed, which is tried again: %s",
                self.token.token_id,
                left_s,
                error,
            )
            return min(max(_AGAIN_S, _AGAIN_AT * left_s), _MAX_WAIT_S)

    def _wait_s(self) -> float:
        return min(_RENEWED_AT * _left_s(self.token), _MAX_WAIT_S)

    def _advance(self) -> bool:
        """Renew the token, or replace it; return whether there is more to do."""
        if self.token.expires_at < self.token.ends_at and _left_s(self.token) > 0:
            renewed = self._renew(self.token)
            if renewed.expires_at > self.token.expires_at:
                self.token = renewed
                return True
        if self._file is None:
            _LOG.warning(
                "Delegation token %s expires at %s and cannot be renewed any more: queries that use it end then.",
                self.token.token_id,
                self.token.expires_at.isoformat(timespec="seconds"),
            )
            return False
        token = self._obtain()
        _write(self._file, jaas_text(token))
        self.token = token
        return True


def _left_s(token: DelegationToken) -> float:
    """Return for how long a token is valid, by the clock of the brokers."""
    return (token.expires_at - datetime.now(timezone.utc) - token.clock_ahead).total_seconds()


def _write(file: Path, text: str) -> None:
    """Replace a file at once, readable for its owner alone."""
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "w") as written:
            written.write(text)
        os.replace(name, file)  # noqa: PTH105 - both are in one folder
    except BaseException:
        with suppress(OSError):
            os.unlink(name)  # noqa: PTH108
        raise


def _milliseconds(span: timedelta | None) -> int:
    return -1 if span is None else max(1, span // timedelta(milliseconds=1))


def _security_protocol(options: Mapping[str, str]) -> str:
    """Return the security protocol of a connection, with names and values read as in a query.

    Raises:
        OptionError: it is unknown, or given twice: the query must not be less encrypted than what obtained the token.
    """
    option = OPTIONS[_PROTOCOL]
    given = {value for name, value in options.items() if name.strip().lower() == _PROTOCOL}
    if len(given) > 1:
        raise OptionError(
            f"Option '{_PROTOCOL}' is given twice with different values.",
            condition="OPTION_CONFLICT",
            hint="Remove one of them.",
            parameters={"option": _PROTOCOL},
        )
    for value in given:
        try:
            return str(option.parse(value)) if option.parse is not None else value
        except ValueError as error:
            raise OptionError(
                f"Option '{_PROTOCOL}' {error}.",
                condition="OPTION_INVALID",
                hint="Set it to the security protocol of the listener.",
                parameters={"option": _PROTOCOL},
            ) from None
    return str(option.default)


def _client(options: Mapping[str, str]) -> KafkaClient:
    """Return a client with the options of a connection; options of reads and writes are left out."""
    return KafkaClient(_connection(options))


def _connection(options: Mapping[str, str]) -> ConnectionOptions:
    chosen = {}
    for name, value in options.items():
        option = OPTIONS.get(name.strip())
        if name.strip().lower().startswith("kafka.") and (option is None or option.scopes == EVERYWHERE):
            chosen[name] = value
    resolved = parse_write_options(chosen, streaming=False)
    for note in resolved.notes:
        _LOG.warning(note)
    return resolved.connection
