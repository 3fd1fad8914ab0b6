"""SASL: what the listener offers, and whether the login is accepted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pyspark_kafka._client.client.login.errors import weaker_warning
from pyspark_kafka._client.client.net.connection import address_of
from pyspark_kafka._client.client.net.handshake import open_connection
from pyspark_kafka._client.options import LOGIN_MODULES
from pyspark_kafka._ops.diagnosis.findings import Finding, FindingStatus
from pyspark_kafka._ops.diagnosis.side_by_side import ask_all
from pyspark_kafka.errors import AccessError, ConnectorError, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_kafka._client.client.queries.listener import ListenerStatus
    from pyspark_kafka._client.options import ConnectionOptions
    from pyspark_kafka._ops.diagnosis.context import Context, Server

_PROTOCOL = "kafka.security.protocol"
_MECHANISM = "kafka.sasl.mechanism"
_JAAS = "kafka.sasl.jaas.config"
# The safest first.
_PREFERRED = ("SCRAM-SHA-512", "SCRAM-SHA-256", "OAUTHBEARER", "GSSAPI", "AWS_MSK_IAM", "PLAIN")
# The arguments of a login module, with a place for what the user has.
_ARGUMENTS = {
    "GSSAPI": 'useKeyTab=true keyTab="…" principal="…"',
    "OAUTHBEARER": 'clientId="…" clientSecret="…"',
    "AWS_MSK_IAM": "",
}
_OTHER_LISTENER = (
    "Name the port of another listener in kafka.bootstrap.servers: this package has no mechanism that this one offers."
)
_LOGIN = 'username="…" password="…"'


def judge_login(context: Context) -> Iterator[Finding]:
    """Compare the mechanisms, and log in to each listener."""
    options = context.settings.connection
    good: list[Server] = []
    asked: list[Server] = []
    for server in context.usable:
        wrong = judge_mechanism(server, options, context.listeners[server])
        if wrong is not None:
            yield wrong
        elif options.uses_sasl:
            asked.append(server)
        else:
            good.append(server)
            text = f"No login: the listener of {address_of(*server)} asks for none."
            yield Finding("sasl", FindingStatus.OK, text, facts={"server": address_of(*server), "mechanisms": []})

    def log_in(server: Server) -> float:
        connection = open_connection(*server, options, context.step())
        session = connection.session
        connection.close()
        return math.inf if session is None else session.ends_at - session.began_at

    for server, result in ask_all(asked, log_in, context.step()).items():
        facts = _facts(server, options, context.listeners[server])
        if isinstance(result, float):
            good.append(server)
            yield _logged_in(server, options, result, facts)
        else:
            yield _refused(server, options, result, facts)
    context.usable = good
    if not good:
        context.blocked = "no broker lets this client in"


def judge_mechanism(server: Server, options: ConnectionOptions, found: ListenerStatus) -> Finding | None:
    """Compare the SASL of a listener with the SASL of the options; None if a login can be tried. Pure."""
    address, facts = address_of(*server), _facts(server, options, found)
    offered = listed(found.mechanisms) or "none"
    has_sasl = found.protocol is not None and found.protocol.startswith("SASL_")
    best = _best_of(found.mechanisms)
    if has_sasl and not options.uses_sasl:
        return Finding(
            "sasl",
            FindingStatus.FAILED,
            f"{address} wants a login (SASL: {offered}), but {_PROTOCOL} is '{options.security_protocol}'.",
            f"Set {protocol_with_login(found)}." if best else _OTHER_LISTENER,
            {**facts, "option": _PROTOCOL, "value": found.protocol},
        )
    if options.uses_sasl and not has_sasl:
        return Finding(
            "sasl",
            FindingStatus.FAILED,
            f"{address} is a listener without SASL, but {_PROTOCOL} is '{options.security_protocol}'.",
            "Name the port of the listener with SASL in kafka.bootstrap.servers. Only if whoever runs the cluster says "
            f"that this listener is meant, set {_PROTOCOL} to {found.protocol} and remove {_MECHANISM} and {_JAAS}: "
            "then nobody logs in.",
            {**facts, "option": _PROTOCOL, "value": found.protocol},
        )
    mechanism = options.login.mechanism if options.login is not None else ""
    if options.uses_sasl and found.mechanisms and mechanism not in found.mechanisms:
        return Finding(
            "sasl",
            FindingStatus.FAILED,
            f"{address} does not offer the mechanism {mechanism}; it offers {offered}.",
            _mechanism_advice(mechanism, best) if best else _OTHER_LISTENER,
            {**facts, "option": _MECHANISM, "value": best},
        )
    return None


def _mechanism_advice(mechanism: str, best: str) -> str:
    advice = f"et {_MECHANISM} to {best}{_jaas_example(best)}"
    warning = weaker_warning(mechanism, best)
    if not warning:
        return f"S{advice}."
    return (
        f"Name the port of a listener that offers {mechanism} in kafka.bootstrap.servers, or have it enabled for this "
        f"one. Only if whoever runs the cluster says so, s{advice.rstrip(';')}: {warning}."
    )


def protocol_with_login(found: ListenerStatus) -> str:
    """Return the settings for a listener, in the words after "Set": its protocol, and a login if it requires one."""
    best = _best_of(found.mechanisms)
    login = f", {_MECHANISM} to {best}{_jaas_example(best)}" if best else ""
    return f"{_PROTOCOL} to {found.protocol}{login}"


def user_of(options: ConnectionOptions) -> str:
    """Return the user name of a login; empty if it has none."""
    return str(getattr(options.login, "username", ""))


def _logged_in(server: Server, options: ConnectionOptions, lasts_s: float, facts: dict[str, Any]) -> Finding:
    mechanism, user = facts["mechanism"], user_of(options)
    who = f" as '{user}'" if user else ""
    renewed = "" if lasts_s == math.inf else f"; the broker asks again after about {lasts_s / 60:.0f} minutes (KIP-368)"
    text = f"Logged in at {address_of(*server)} with {mechanism}{who}{renewed}."
    if mechanism == "PLAIN" and not options.uses_tls:
        remedy = (
            f"Set {_PROTOCOL} to SASL_SSL if the brokers have such a listener: the password can be read on the way."
        )
        return Finding("sasl", FindingStatus.WARNING, text, remedy, facts)
    return Finding("sasl", FindingStatus.OK, text, facts=facts)


def _refused(server: Server, options: ConnectionOptions, error: object, facts: dict[str, Any]) -> Finding:
    address, mechanism = address_of(*server), facts["mechanism"]
    if not isinstance(error, ConnectorError):
        text, remedy = (
            f"{address} did not finish the login in time.",
            "Look at the broker's log, and raise --step-timeout.",
        )
        return Finding("sasl", FindingStatus.FAILED, text, remedy, facts)
    user = user_of(options)
    if isinstance(error, AccessError) and user:
        return Finding(
            "sasl",
            FindingStatus.FAILED,
            f"{address} refused the login of '{user}' with {mechanism}: {error.message}",
            f"Correct the user name or the password in {_JAAS}: the broker does not know this user, or not with this "
            f"password, or has no credentials of {mechanism} for it.",
            {**facts, "option": _JAAS},
        )
    return Finding("sasl", FindingStatus.FAILED, error.message, error.hint, {**facts, **error.parameters})


def _facts(server: Server, options: ConnectionOptions, found: ListenerStatus) -> dict[str, Any]:
    return {
        "server": address_of(*server),
        "mechanisms": list(found.mechanisms),
        "mechanism": options.login.mechanism if options.login is not None else None,
        "user": user_of(options) or None,
    }


def _best_of(mechanisms: tuple[str, ...]) -> str:
    """Return the best of the offered mechanisms; empty if this package has none of them."""
    usable = [each for each in mechanisms if each in LOGIN_MODULES]
    return next((each for each in _PREFERRED if each in usable), (*usable, "")[0])


def _jaas_example(mechanism: str) -> str:
    return f" and {_JAAS} to: {LOGIN_MODULES[mechanism]} required {_ARGUMENTS.get(mechanism, _LOGIN)}".rstrip() + ";"
