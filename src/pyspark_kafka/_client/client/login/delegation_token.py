"""A delegation token (KIP-48): a name and a key that log a user in for a limited time, in place of a password."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from pyspark_kafka._client.options import Secret

_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_NEVER = datetime.max.replace(tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """A delegation token. Times are by the brokers' clocks. Pickles, with its key; shows the key nowhere.

    Attributes:
        token_id: its name, which is not a secret.
        key: its key in base64, as the password of a login.
        owner: the principal that it logs in, such as `User:alice`.
        issued_at: when it was created.
        expires_at: from when on it is refused; `renew` moves it.
        ends_at: behind which it cannot be renewed.
        renewers: principals that may renew it, besides the owner.
        clock_ahead: how far the clock of the brokers is ahead of this machine's, as of its creation; 0 if not known.
    """

    token_id: str
    key: Secret
    owner: str
    issued_at: datetime
    expires_at: datetime
    ends_at: datetime
    renewers: tuple[str, ...] = ()
    clock_ahead: timedelta = timedelta(0)

    @property
    def jaas_config(self) -> Secret:
        """The value of `kafka.sasl.jaas.config` for a login with this token, by SCRAM-SHA-256 or SCRAM-SHA-512."""
        return Secret(jaas_text(self))


def jaas_text(token: DelegationToken) -> str:
    """Return the JAAS configuration of a token, which holds its key."""
    return jaas_text_of(token.token_id, token.key.reveal())


def jaas_text_of(token_id: str, key: str) -> str:
    """Return the JAAS configuration of a token by its id and its key in base64."""
    # A broker has chosen the id: a quotation mark in it must not begin a setting of its own.
    name = token_id.replace("\\", "\\\\").replace('"', '\\"')
    return f'{_MODULE} required username="{name}" password="{key}" tokenauth="true";'


def hmac_of(token: DelegationToken) -> bytes:
    """Return the key of a token as requests about it have it."""
    return base64.b64decode(token.key.reveal())


def key_of(hmac: bytes) -> Secret:
    """Return the key of a token as logins have it."""
    return Secret(base64.b64encode(hmac).decode())


def time_of(milliseconds: int) -> datetime:
    """Return a time of the wire; the last representable time for a time beyond the calendar."""
    try:
        return _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return _NEVER if milliseconds > 0 else _EPOCH
