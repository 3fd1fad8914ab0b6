"""A check that the options of TLS and SASL fit the security protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_kafka._client.options.resolve.login import LOGIN_OPTIONS, resolve_login
from pyspark_kafka._client.options.resolve.tls import TLS_OPTIONS, resolve_tls

if TYPE_CHECKING:
    from pyspark_kafka._client.options.catalogue.parsed import Parsed, Problems

_PROTOCOL = "kafka.security.protocol"


def resolve_security(options: Parsed, problems: Problems) -> dict[str, Any]:
    """Return `tls` and `login` as fields of `ConnectionOptions`, as far as the protocol uses them."""
    protocol: str = options[_PROTOCOL]
    # If the protocol is invalid, the others cannot be checked.
    judge = options.given(_PROTOCOL) or not options.attempted(_PROTOCOL)
    resolved: dict[str, Any] = {}
    if protocol.startswith("SASL_"):
        resolved["login"] = resolve_login(options, problems)
    elif judge:
        _refuse_unused(
            options, problems, LOGIN_OPTIONS, f"SASL_{'SSL' if protocol == 'SSL' else 'PLAINTEXT'}", "log in"
        )
    if protocol.endswith("SSL"):
        resolved["tls"] = resolve_tls(options, problems)
    elif judge:
        wanted = "SASL_SSL" if protocol == "SASL_PLAINTEXT" else "SSL"
        _refuse_unused(options, problems, TLS_OPTIONS, wanted, "be encrypted")
    return resolved


def _refuse_unused(options: Parsed, problems: Problems, names: tuple[str, ...], wanted: str, what: str) -> None:
    """Refuse security options that the protocol does not use: connections would be less secure than they look."""
    for name in names:
        if options.attempted(name):
            problems.conflict(
                name,
                f"is given, but with {_PROTOCOL} '{options[_PROTOCOL]}' connections would not {what}",
                f"Set {_PROTOCOL} to {wanted}, or remove '{name}'.",
            )
