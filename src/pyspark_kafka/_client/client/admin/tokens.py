"""Delegation tokens: created, renewed, expired and described, on a connection that itself uses other credentials."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from pyspark_kafka._client.client.cluster.fanout import call_brokers
from pyspark_kafka._client.client.login.delegation_token import DelegationToken, hmac_of, key_of, time_of
from pyspark_kafka._client.client.wire.messages import ErrorCode, broker_error
from pyspark_kafka._client.client.wire.token_requests import (
    CreateTokenRequest,
    DescribeTokensRequest,
    ExpireTokenRequest,
    RenewTokenRequest,
)
from pyspark_kafka.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka._client.client.wire.token_requests import TokenEntry

_LOOK_AGAIN_S = 0.05
_NOT_ALLOWED_HINT = (
    "Ask for tokens with a user name and a password, a Kerberos ticket or a client certificate, over SASL or TLS; a "
    "connection that uses a token itself, or nothing, may not."
)
_DISABLED_HINT = "Set delegation.token.secret.key on all brokers and controllers, or use other credentials."
_HINTS = {
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: _NOT_ALLOWED_HINT,
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: _DISABLED_HINT,
}


def create_token(client: KafkaClient, renewers: Sequence[str] = (), lifetime_ms: int = -1) -> DelegationToken:
    """Create a token of the user of the client, and wait until the brokers that can be reached know it.

    Runs on: driver; blocks.

    Args:
        client: the cluster, with other credentials than a token.
        renewers: principals, such as `User:bob`, that may renew it, besides its owner.
        lifetime_ms: for how long it can be renewed; -1 takes the brokers' bound.

    Raises:
        AccessError: this connection may not request tokens, or the brokers take none.
        ProtocolError: the brokers support no tokens (condition UNSUPPORTED_VERSION).
        DeadlineError: no response in time. A token that was created nevertheless expires unused.
    """
    principals = [_principal(renewer) for renewer in renewers]
    found = _call(client, "Creating a delegation token", CreateTokenRequest(principals, lifetime_ms)).token
    now = datetime.now(timezone.utc)
    token = _token(found)
    token = replace(token, renewers=tuple(renewers), clock_ahead=token.issued_at - now)
    _await_known(client, token)
    return token


def renew_token(client: KafkaClient, token: DelegationToken, period_ms: int = -1) -> DelegationToken:
    """Extend a token's life, but not beyond its end; return it with the new time.

    Runs on: driver; blocks.

    Args:
        client: the cluster, with other credentials than a token.
        token: not expired yet.
        period_ms: from now on; -1 takes the brokers' period.

    Raises:
        AccessError: it has expired, or the user may not renew it.
        BrokerError: there is none.
    """
    step = f"Renewing delegation token {token.token_id}"
    changed = _call(client, step, RenewTokenRequest(hmac_of(token), period_ms))
    return replace(token, expires_at=time_of(changed.expires_at_ms))


def expire_token(client: KafkaClient, token: DelegationToken, period_ms: int = -1) -> DelegationToken:
    """Set a token's expiry to a later time, or expire it immediately; return it with the new time.

    Runs on: driver; blocks. Connections that have logged in with it stay open until their sessions end.

    Raises:
        AccessError: it has expired, or the user may not do this.
        BrokerError: there is none.
    """
    step = f"Expiring delegation token {token.token_id}"
    changed = _call(client, step, ExpireTokenRequest(hmac_of(token), period_ms))
    return replace(token, expires_at=time_of(changed.expires_at_ms))


def describe_tokens(client: KafkaClient, owners: Sequence[str] | None = None) -> list[DelegationToken]:
    """Return the tokens of some owners, or all, as far as the user may see them.

    Runs on: driver; blocks.
    """
    principals = None if owners is None else [_principal(owner) for owner in owners]
    found = _call(client, "Describing delegation tokens", DescribeTokensRequest(principals)).tokens
    return [_token(entry) for entry in found]


def _principal(text: str) -> tuple[str, str]:
    kind, _, name = text.partition(":")
    if not kind or not name:
        raise OptionError(
            f"'{text}' is not a principal.",
            condition="OPTION_INVALID",
            hint="Write a principal as type and name, such as User:alice.",
        )
    return kind, name


def _token(entry: TokenEntry) -> DelegationToken:
    return DelegationToken(
        entry.token_id,
        key_of(entry.hmac),
        ":".join(entry.owner),
        time_of(entry.issued_at_ms),
        time_of(entry.expires_at_ms),
        time_of(entry.ends_at_ms),
        tuple(":".join(renewer) for renewer in entry.renewers),
    )


def _call(client: KafkaClient, step: str, request: Any) -> Any:
    def attempt(deadline: Deadline) -> Any:
        # Not `any_broker.call`, which sends to a second broker after some silence: there would be two tokens.
        connection = client.any_broker.connect(deadline)
        response = connection.call(request, deadline)
        if response.error_code != ErrorCode.NONE:
            raise broker_error(
                response.error_code,
                f"{step} at {connection.address} failed",
                hint=_HINTS.get(response.error_code),
                broker=connection.address,
            )
        return response

    return client.retrying(step, client.deadline(), attempt)


def _await_known(client: KafkaClient, token: DelegationToken) -> None:
    """Wait until brokers accept a token: they receive it from the controller, each a moment after it was created.

    An unreachable broker is left out: it learns of tokens before it serves clients.
    """
    deadline = client.deadline()
    waiting = set(client.fetch_metadata((), deadline).brokers)
    while waiting and not deadline.expired:
        step = deadline.within(client.options.answer_timeout_ms)
        asked = call_brokers(client, dict.fromkeys(waiting, DescribeTokensRequest([_principal(token.owner)])), step)
        for broker_id, found in asked.items():
            known = found.response is not None and any(
                each.token_id == token.token_id for each in found.response.tokens
            )
            if known or found.error is not None:
                waiting.discard(broker_id)
        if waiting:
            deadline.pause(min(_LOOK_AGAIN_S, deadline.remaining_s()))
