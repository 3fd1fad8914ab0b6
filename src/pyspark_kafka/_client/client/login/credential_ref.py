"""A login that the options only refer to, read when a connection is made."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyspark_kafka._client.options import UNSIGNED_TOKENS_NOTE, OAuthLogin, ReferredLogin, UnsignedToken, parse_login
from pyspark_kafka.errors import OptionError

if TYPE_CHECKING:
    from pyspark_kafka._client.options import Login

_LOG = logging.getLogger(__name__)
_WARNED: set[ReferredLogin] = set()
_MAX_WARNED = 100


def resolve_login(login: Login) -> Login:
    """Return the login as it is, or read it from the JAAS configuration that it refers to.

    Runs on: driver and executor, once a connection. What blocks is the reference; see `Secret.reveal`.

    Raises:
        OptionError: there is nothing where the reference leads, or it is not a JAAS configuration for the mechanism.
    """
    if not isinstance(login, ReferredLogin):
        return login
    try:
        found = parse_login(login.config.reveal(), login.mechanism, dict(login.beside))
    except ValueError as error:
        if isinstance(error, OptionError):
            raise
        problem = str(error)
    else:
        _warn_of_unsigned(found, login)
        return found
    # Not within the handler: the frames of the parser's error hold the configuration.
    raise OptionError(
        f"Option 'kafka.sasl.jaas.config' refers to '{login.config.reference}', and what is there {problem}.",
        condition="OPTION_INVALID",
        hint="Correct the configuration there, or the option.",
        parameters={"option": "kafka.sasl.jaas.config", "reference": login.config.reference},
    )


def _warn_of_unsigned(found: Login, login: ReferredLogin) -> None:
    """Log what the options could not say when they were read; once for each reference."""
    if not isinstance(found, OAuthLogin) or not isinstance(found.source, UnsignedToken):
        return
    if login not in _WARNED and len(_WARNED) < _MAX_WARNED:
        _WARNED.add(login)
        _LOG.warning(UNSIGNED_TOKENS_NOTE)
