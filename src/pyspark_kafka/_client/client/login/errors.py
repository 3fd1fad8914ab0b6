"""Errors of SASL exchanges, with a guess at the cause and the option to change. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._client.client.login.mechanism import shown
from pyspark_kafka._client.client.wire.error_codes import ErrorCode, broker_error
from pyspark_kafka._client.options import LOGIN_MODULES
from pyspark_kafka.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka._client.client.login.mechanism import SaslMechanism
    from pyspark_kafka.errors import BrokerError

_MAX_MECHANISMS = 20
# What a server gets that it could use elsewhere: nothing, a token for some time, the password.
_SHOWN_TO_SERVER = {"OAUTHBEARER": 1, "AWS_MSK_IAM": 1, "PLAIN": 2}


def handshake_refused(code: int, where: str, mechanism: str, offered: Sequence[str], *, broker: str) -> BrokerError:
    """Build the error for a listener that does not take the mechanism, or no SASL at all.

    Args:
        code: the broker's.
        where: what failed and where, without a full stop.
        mechanism: the mechanism of the options.
        offered: the mechanisms of the listener, from its response.
        broker: its address.
    """
    names = [shown(str(name)) for name in offered[:_MAX_MECHANISMS]]
    return broker_error(
        code,
        f"{where} failed",
        detail=f"enabled mechanisms: {', '.join(names) or 'none'}",
        hint=_other_mechanism(mechanism, names) if code == ErrorCode.UNSUPPORTED_SASL_MECHANISM else None,
        broker=broker,
        mechanism=mechanism,
    )


def credentials_refused(code: int, where: str, machine: SaslMechanism, said: str | None, *, broker: str) -> BrokerError:
    """Build the error for credentials that the broker refused.

    Args:
        code: the broker's.
        where: what failed and where, without a full stop.
        machine: the exchange, which may know more.
        said: the broker's own words.
        broker: its address.
    """
    refusal = machine.refusal()
    if said and refusal.sent is not None:
        said = refusal.sent.hidden_in(said)
    error = broker_error(
        code,
        f"{where} failed",
        detail=shown(said) if said else None,
        consequence=refusal.known,
        hint=refusal.hint if refusal.hint and code == ErrorCode.SASL_AUTHENTICATION_FAILED else None,
        broker=broker,
        mechanism=machine.name,
    )
    error.retriable = error.retriable or refusal.is_retriable
    return error


def exchange_failed(where: str, reason: str) -> TransportError:
    """Build the error for an exchange that ended without success, though the broker sent no error code."""
    return TransportError(
        f"{where} failed: {reason}.",
        condition="SASL_EXCHANGE_FAILED",
        hint="Check that user name and password fit this cluster, and that no proxy answers instead of the broker.",
        parameters={"reason": reason},
    )


def weaker_warning(mechanism: str, instead: str) -> str:
    """Return what a login with another mechanism costs, as a clause; empty if it shows a server no more than before.

    The list of a listener is what somebody says who has not proved who he is.
    """
    if _SHOWN_TO_SERVER.get(instead, 0) <= _SHOWN_TO_SERVER.get(mechanism, 0):
        return ""
    what = "the password itself" if instead == "PLAIN" else "a token that others accept, too,"
    return f"with {instead} {what} goes to whoever answers there, and with {mechanism} it does not"


def _other_mechanism(mechanism: str, offered: list[str]) -> str:
    usable = [name for name in LOGIN_MODULES if name in offered]
    # A weaker one is named only if there is none as strong.
    usable = [name for name in usable if not weaker_warning(mechanism, name)] or usable
    if not offered:
        return "Use another listener, or have sasl.enabled.mechanisms set for this one."
    if not usable:
        return f"Use another listener: this one has no mechanism that this connector has ({', '.join(LOGIN_MODULES)})."
    warning = weaker_warning(mechanism, usable[0])
    if warning:
        return (
            f"Use another listener, or have {mechanism} enabled for this one (sasl.enabled.mechanisms). Set "
            f"kafka.sasl.mechanism to {' or '.join(usable)} only if whoever runs the cluster says so: {warning}."
        )
    return (
        f"Set kafka.sasl.mechanism to {' or '.join(usable)} (now '{mechanism}'), and kafka.sasl.jaas.config to its "
        f"login module: {' or '.join(dict.fromkeys(LOGIN_MODULES[name] for name in usable))}."
    )
