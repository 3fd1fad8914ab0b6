"""Logins with tokens, and where the tokens come from, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from pyspark_kafka._client.options.values.secret import Secret
    from pyspark_kafka._client.options.values.tls import TlsOptions


@dataclass(frozen=True, slots=True)
class TokenEndpoint:
    """An OAuth server that returns tokens for a client's id and secret (RFC 6749, chapter 4.4).

    Units: milliseconds.

    Attributes:
        url: https.
        client_id: the client.
        client_secret: what proves it.
        scope: the requested scope; None leaves it to the server.
        urlencode_header: whether id and secret are URL-encoded before they are put into the header.
        tls: the certificates to trust; None trusts the system's. The settings for brokers are never used.
        connect_timeout_ms: for one connection, TLS included.
        read_timeout_ms: for one response.
        retry_backoff_ms: before a failed request is repeated; doubles after each failure.
        retry_backoff_max_ms: upper bound of that.
    """

    url: str
    client_id: str
    client_secret: Secret
    scope: str | None = None
    urlencode_header: bool = False
    tls: TlsOptions | None = None
    connect_timeout_ms: int = 10_000
    read_timeout_ms: int = 10_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 10_000


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A file with a token, on every machine; it is read again when it has changed."""

    path: str


@dataclass(frozen=True, slots=True)
class TokenFunction:
    """A function that returns a token, by its import path `package.module:function`; it runs in each process."""

    name: str


UNSIGNED_TOKENS_NOTE = (
    "Tokens of kafka.sasl.jaas.config (unsecuredLogin…) are not signed: a broker that accepts them accepts anyone. "
    "They are for tests."
)


@dataclass(frozen=True, slots=True)
class UnsignedToken:
    """Claims of an unsigned token, for brokers that are configured for tests.

    Attributes:
        claims: name and value of each.
        lifetime_s: seconds until it expires.
    """

    claims: tuple[tuple[str, str | float | tuple[str, ...]], ...]
    lifetime_s: int = 3600


TokenSource = TokenEndpoint | TokenFile | TokenFunction | UnsignedToken


@dataclass(frozen=True, slots=True)
class TokenRenewal:
    """The times of a token's renewal, before it expires; as in Java's clients.

    Attributes:
        window_factor: the share of its lifetime after which it is replaced.
        window_jitter: the greatest random share on top of that.
        min_period_s: seconds for which it is kept in any case; without effect on tokens that live too shortly for it.
        buffer_s: seconds before its end by which it is replaced, likewise.
    """

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period_s: int = 60
    buffer_s: int = 300


@dataclass(frozen=True, slots=True)
class OAuthLogin:
    """A token of an OAuth server (SASL OAUTHBEARER).

    Attributes:
        source: where tokens come from.
        extensions: name and value of each SASL extension (KIP-342).
        scope_claim: the claim with the scopes.
        sub_claim: the claim with the user.
        renewal: when tokens are replaced.
    """

    source: TokenSource
    extensions: tuple[tuple[str, str], ...] = ()
    scope_claim: str = "scope"
    sub_claim: str = "sub"
    renewal: TokenRenewal = field(default_factory=TokenRenewal)
    mechanism: ClassVar[str] = "OAUTHBEARER"


@dataclass(frozen=True, slots=True)
class MskIamLogin:
    """Credentials of AWS for Amazon MSK. What crosses the network is a signed URL, as a token of OAUTHBEARER.

    Attributes:
        region: of the cluster; None takes it from the broker's name, or from the environment.
        profile: of the AWS configuration; None takes AWS's default chain of credentials.
        role_arn: a role to assume.
        role_session_name: the session's name for that role.
        renewal: when tokens are replaced.
    """

    region: str | None = None
    profile: str | None = None
    role_arn: str | None = None
    role_session_name: str | None = None
    renewal: TokenRenewal = field(default_factory=TokenRenewal)
    mechanism: ClassVar[str] = "AWS_MSK_IAM"
