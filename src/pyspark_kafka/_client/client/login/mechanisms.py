"""A SASL exchange for a login: which class goes with which."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.login.kerberos import KerberosMechanism
from pyspark_kafka._client.client.login.plain import PlainMechanism
from pyspark_kafka._client.client.login.scram import ScramMechanism
from pyspark_kafka._client.client.login.tokens.cache import TokenCache
from pyspark_kafka._client.options import KerberosLogin, MskIamLogin, OAuthLogin, PlainLogin, ReferredLogin, TokenFile

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from pyspark_kafka._client.client.login.mechanism import SaslMechanism
    from pyspark_kafka._client.client.login.tokens.token import Token
    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka._client.options import Login, TokenRenewal

_TOKENS = TokenCache()


def build_mechanism(login: Login, host: str, deadline: Deadline) -> SaslMechanism:
    """Return a new exchange for a login.

    Runs on: driver and executor, once a connection; blocks where a token or a ticket must be fetched.

    Args:
        login: mechanism and credentials.
        host: the name that the user or the cluster gave to the broker.
        deadline: for what is fetched.

    Raises:
        MissingDependencyError: the mechanism needs a package that is not there.
        AccessError: a token was refused, or is not one.
        OptionError: a token or credentials are not where the options say.
        TransportError: a token or a ticket cannot be had now.
    """
    if isinstance(login, PlainLogin):
        return PlainMechanism(login)
    if isinstance(login, KerberosLogin):
        return KerberosMechanism(login, host)
    if isinstance(login, OAuthLogin):
        # Parsers of JSON and more: most connections have no token.
        from pyspark_kafka._client.client.login.tokens.sources import fetch_token  # noqa: PLC0415

        renewal = None if isinstance(login.source, TokenFile) else login.renewal
        return _with_token(login, renewal, partial(fetch_token, login, deadline), deadline, login.extensions)
    if isinstance(login, MskIamLogin):
        from pyspark_kafka._client.client.login.tokens.msk_iam import region_of, sign_token  # noqa: PLC0415

        region = region_of(login, host)
        return _with_token((login, region), login.renewal, partial(sign_token, login, region), deadline)
    if isinstance(login, ReferredLogin):
        raise TypeError("the login was not read; see `resolve_login`")
    return ScramMechanism(login)


def _with_token(
    login: Hashable,
    renewal: TokenRenewal | None,
    fetch: Callable[[], Token],
    deadline: Deadline,
    extensions: tuple[tuple[str, str], ...] = (),
) -> SaslMechanism:
    from pyspark_kafka._client.client.login.oauth import OAuthMechanism  # noqa: PLC0415 - as above

    token, was_kept = _TOKENS.get(login, renewal, fetch, deadline)
    return OAuthMechanism(token, extensions=extensions, forget=lambda: _TOKENS.discard(login, token), was_kept=was_kept)
