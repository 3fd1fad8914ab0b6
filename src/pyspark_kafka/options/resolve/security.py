"""What the options of TLS and SASL mean together: the login, the certificate files, and what would be unsafe.

Layer: options.resolve.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_kafka.options.parse.jaas import EXAMPLE, Login, parse_jaas_config

if TYPE_CHECKING:
    from pyspark_kafka.options.resolve.collector import Collector

_PROTOCOL = "kafka.security.protocol"
_MECHANISM = "kafka.sasl.mechanism"
_JAAS = "kafka.sasl.jaas.config"
_TRUSTSTORE = "kafka.ssl.truststore.location"
_KEYSTORE = "kafka.ssl.keystore.location"
_KEY_PASSWORD = "kafka.ssl.key.password"  # noqa: S105 - the name of an option
_HOST_CHECK = "kafka.ssl.endpoint.identification.algorithm"


def resolve_login(options: Collector) -> dict[str, Any]:
    """Check the options of TLS and SASL; problems go to the collector.

    Returns:
        User name and password as fields of `ConnectionOptions`; empty without a login.
    """
    protocol: str = options[_PROTOCOL]
    # If the protocol is invalid, the others cannot be judged.
    judge = options.given(_PROTOCOL) or not options.attempted(_PROTOCOL)
    login: dict[str, Any] = {}
    if protocol.startswith("SASL_"):
        login = _resolve_sasl(options, protocol)
    elif judge:
        _refuse_unused(options, (_MECHANISM, _JAAS), f"SASL_{'SSL' if protocol == 'SSL' else 'PLAINTEXT'}", "log in")
    if protocol.endswith("SSL"):
        _check_tls(options)
    elif judge:
        wanted = "SASL_SSL" if protocol == "SASL_PLAINTEXT" else "SSL"
        _refuse_unused(options, (_TRUSTSTORE, _KEYSTORE, _KEY_PASSWORD), wanted, "be encrypted")
    return login


def _refuse_unused(options: Collector, names: tuple[str, ...], wanted: str, what: str) -> None:
    """Refuse security options that the protocol does not use: connections would be less secure than they look."""
    for name in names:
        if options.attempted(name):
            options.report(
                "OPTION_CONFLICT",
                f"Option '{name}' is given, but with {_PROTOCOL} '{options[_PROTOCOL]}' connections would not {what}.",
                f"Set {_PROTOCOL} to {wanted}, or remove '{name}'.",
                name,
            )


def _resolve_sasl(options: Collector, protocol: str) -> dict[str, Any]:
    for name, hint in (
        (_MECHANISM, "Set it to the mechanism of the brokers' listener: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512."),
        (_JAAS, f"Set it to: {EXAMPLE}"),
    ):
        if not options.attempted(name):
            options.report("OPTION_MISSING", f"Option '{name}' must be set with {_PROTOCOL} '{protocol}'.", hint, name)
    mechanism: str | None = options[_MECHANISM]
    login = _read_login(options)
    if login is None:
        return {}
    if login.delegation_token:
        options.report(
            "OPTION_NOT_SUPPORTED",
            f"Option '{_JAAS}' asks for a delegation token (tokenauth), which is not supported yet.",
            "Use a user name and a password.",
            _JAAS,
        )
    if mechanism is not None and mechanism not in login.mechanisms:
        options.report(
            "OPTION_CONFLICT",
            f"Option '{_JAAS}' uses the login module of {' and '.join(login.mechanisms)}, but '{_MECHANISM}' is "
            f"'{mechanism}'.",
            "Use the login module of the mechanism: PlainLoginModule for PLAIN, ScramLoginModule for SCRAM.",
            _JAAS,
        )
    if (mechanism, protocol) == ("PLAIN", "SASL_PLAINTEXT"):
        options.notes.append(
            f"With {_PROTOCOL} 'SASL_PLAINTEXT' and {_MECHANISM} 'PLAIN' the password crosses the network unencrypted."
        )
    return {"sasl_username": login.username, "sasl_password": login.password}


def _read_login(options: Collector) -> Login | None:
    if not options.given(_JAAS):
        return None
    try:
        return parse_jaas_config(options[_JAAS].reveal())
    except ValueError as error:
        options.report("OPTION_INVALID", f"Option '{_JAAS}' {error}.", option=_JAAS)
        return None


def _check_tls(options: Collector) -> None:
    for store in ("truststore", "keystore"):
        location, kind = f"kafka.ssl.{store}.location", f"kafka.ssl.{store}.type"
        if options.given(location) and not options.attempted(kind):
            # Without a type Java reads a JKS store, so a missing type means a store that cannot be read here.
            options.report(
                "OPTION_MISSING",
                f"Option '{kind}' must be set to PEM where '{location}' is given; Java's default, JKS, cannot be read.",
                f"Set {kind} to PEM. To convert a Java store: keytool -importkeystore -srckeystore <store> "
                "-destkeystore store.p12 -deststoretype PKCS12, then openssl pkcs12 -in store.p12 -out store.pem.",
                kind,
            )
    if options.given(_KEY_PASSWORD) and not options.attempted(_KEYSTORE):
        options.report(
            "OPTION_CONFLICT",
            f"Option '{_KEY_PASSWORD}' is given without '{_KEYSTORE}'.",
            f"Set '{_KEYSTORE}' to the PEM file of the key, or remove the password.",
            _KEY_PASSWORD,
        )
    if not options[_HOST_CHECK]:
        options.notes.append(f"Option '{_HOST_CHECK}' is empty: brokers' certificates are not checked for their names.")
