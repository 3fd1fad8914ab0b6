"""The combined meaning of the options of SASL: a login."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_kafka._client.options.parse import scalars
from pyspark_kafka._client.options.parse.jaas import EXAMPLE, JaasConfig, parse_jaas_config
from pyspark_kafka._client.options.resolve.tokens import (
    TOKEN_MECHANISMS,
    TOKEN_OPTIONS,
    LoginOptionError,
    build_msk_iam,
    build_oauth,
    token_notes,
)
from pyspark_kafka._client.options.values.secret import Secret
from pyspark_kafka._client.options.values.security import (
    LOGIN_MODULES,
    KerberosLogin,
    PlainLogin,
    ReferredLogin,
    ScramLogin,
)
from pyspark_kafka._client.options.values.tokens import UNSIGNED_TOKENS_NOTE, OAuthLogin, UnsignedToken

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka._client.options.catalogue.parsed import Parsed, Problems
    from pyspark_kafka._client.options.values.security import Login

_PROTOCOL = "kafka.security.protocol"
_MECHANISM = "kafka.sasl.mechanism"
_JAAS = "kafka.sasl.jaas.config"
_SERVICE = "kafka.sasl.kerberos.service.name"
# The options that have a meaning with one mechanism only.
_OF_MECHANISM: dict[str, tuple[str, ...]] = {_SERVICE: ("GSSAPI",), **TOKEN_OPTIONS}
# The options that have a meaning with a SASL security protocol only.
LOGIN_OPTIONS = (_MECHANISM, _JAAS, *_OF_MECHANISM)
# Mechanisms whose credentials may be elsewhere than in a JAAS configuration.
_location = scalars.location()
_WITHOUT_JAAS = ("OAUTHBEARER", "AWS_MSK_IAM", "GSSAPI")


def resolve_login(options: Parsed, problems: Problems) -> Login | None:
    """Return the mechanism and its credentials, with a SASL security protocol; None if there is a problem."""
    protocol: str = options[_PROTOCOL]
    found: JaasConfig | Secret | None = options[_JAAS]
    mechanism = _mechanism(options, problems, found)
    if mechanism is None:
        return None
    if found is None and (options.attempted(_JAAS) or mechanism not in _WITHOUT_JAAS):
        if options.attempted(_JAAS):
            return None
        hint = f"Set it to: {EXAMPLE.replace(LOGIN_MODULES['SCRAM-SHA-512'], LOGIN_MODULES[mechanism])}"
        problems.missing(_JAAS, f"must be set with {_PROTOCOL} '{protocol}'", hint)
        return None
    if isinstance(found, JaasConfig):
        problems.notes.extend(found.notes)
        if mechanism not in found.mechanisms:
            problems.conflict(
                _JAAS,
                f"uses the login module of {' and '.join(found.mechanisms)}, but '{_MECHANISM}' is '{mechanism}'",
                f"Use the login module of the mechanism, {LOGIN_MODULES[mechanism]}, or set {_MECHANISM} to "
                f"{' or '.join(found.mechanisms)}.",
            )
            return None
    if (mechanism, protocol) == ("PLAIN", "SASL_PLAINTEXT"):
        problems.notes.append(
            f"With {_PROTOCOL} 'SASL_PLAINTEXT' and {_MECHANISM} 'PLAIN' the password crosses the network unencrypted."
        )
    for name, only in _OF_MECHANISM.items():
        if options.given(name) and mechanism not in only:
            wanted = " and ".join(only)
            problems.notes.append(f"Option '{name}' has no effect: it is for {_MECHANISM} {wanted}, not {mechanism}.")
    given = {name: options[name] for name, only in _OF_MECHANISM.items() if options.given(name) and mechanism in only}
    if any(
        options.attempted(name) and not options.given(name) for name, only in _OF_MECHANISM.items() if mechanism in only
    ):
        # It has its own problem, and what follows from it need not be said.
        return None
    if mechanism in TOKEN_MECHANISMS:
        problems.notes.extend(token_notes(mechanism, protocol))
    if isinstance(found, Secret):
        return ReferredLogin(found.for_option(_JAAS), mechanism, tuple(given.items()))
    try:
        login = _build(found, mechanism, given)
    except LoginOptionError as problem:
        option = problem.option
        condition = "OPTION_INVALID" if options.attempted(option) or option == _JAAS else "OPTION_MISSING"
        problems.report(condition, f"Option '{option}' {problem.clause}.", problem.hint, option)
        return None
    except ValueError as error:
        problems.invalid(_JAAS, str(error))
        return None
    if isinstance(login, OAuthLogin) and isinstance(login.source, UnsignedToken):
        problems.notes.append(UNSIGNED_TOKENS_NOTE)
    return login


def parse_login(config: str, mechanism: str, beside: Mapping[str, Any] | None = None) -> Login:
    """Parse a JAAS configuration to which an option refers, where a connection is made.

    Args:
        config: the configuration.
        mechanism: the SASL mechanism, which it must fit.
        beside: values of the other options of the mechanism that are given, by name.

    Raises:
        ValueError: with a sentence that repeats nothing of the configuration.
    """
    found = parse_jaas_config(config)
    if mechanism not in found.mechanisms:
        raise ValueError(
            f"uses the login module of {' and '.join(found.mechanisms)}, but '{_MECHANISM}' is '{mechanism}'"
        )
    return _build(found, mechanism, beside or {})


def _mechanism(options: Parsed, problems: Problems, found: JaasConfig | Secret | None) -> str | None:
    """Return the mechanism; without the option, Java's default GSSAPI if the login module is Kerberos's."""
    if options.attempted(_MECHANISM):
        mechanism: str | None = options[_MECHANISM]
        return mechanism
    fitting = found.mechanisms if isinstance(found, JaasConfig) else ()
    if fitting == ("GSSAPI",):
        return "GSSAPI"
    but = f", but '{_JAAS}' uses the login module of {' and '.join(fitting)}" if fitting else ""
    problems.missing(
        _MECHANISM,
        f"must be set with {_PROTOCOL} '{options[_PROTOCOL]}': Java's default is GSSAPI (Kerberos){but}",
        f"Set it to the mechanism of the brokers' listener: {' or '.join(fitting or LOGIN_MODULES)}.",
    )
    if not options.attempted(_JAAS):
        problems.missing(_JAAS, f"must be set with {_PROTOCOL} '{options[_PROTOCOL]}'", f"Set it to: {EXAMPLE}")
    return None


def _build(found: JaasConfig | None, mechanism: str, given: Mapping[str, Any]) -> Login:
    """Build the login of a mechanism.

    Raises:
        ValueError: with a sentence that continues "Option 'kafka.sasl.jaas.config' …".
    """
    settings = found or JaasConfig(LOGIN_MODULES[mechanism])
    if mechanism == "OAUTHBEARER":
        return build_oauth(settings, given)
    if mechanism == "AWS_MSK_IAM":
        return build_msk_iam(settings, given)
    if mechanism == "GSSAPI":
        return _kerberos(settings, given)
    if found is None:
        raise ValueError("must be set")
    if mechanism == "PLAIN":
        return PlainLogin(found.texts["username"], found.secrets["password"])
    return ScramLogin(found.texts["username"], found.secrets["password"], mechanism, found.flag("tokenauth"))


def _kerberos(found: JaasConfig, given: Mapping[str, Any]) -> KerberosLogin:
    texts = found.texts
    # The option takes precedence in Java, where both must be equal.
    service = given.get(_SERVICE) or texts.get("serviceName")
    if service is not None and "serviceName" in texts and texts["serviceName"] != service:
        raise ValueError(f"sets serviceName to another name than option '{_SERVICE}' does")
    if found.flag("useKeyTab") and "keyTab" not in texts:
        raise ValueError("sets useKeyTab without keyTab, the file")
    for name in ("keyTab", "ticketCache"):
        try:
            _location(texts.get(name, "default"))
        except ValueError:
            raise ValueError(f"must set {name} to the path of a file") from None
    with_keytab = "keyTab" in texts and texts.get("useKeyTab", "true").lower() != "false"
    if with_keytab and "principal" not in texts:
        raise ValueError("sets keyTab without principal, the name in it")
    return KerberosLogin(
        service_name=service or "kafka",
        principal=texts.get("principal"),
        keytab=texts["keyTab"] if with_keytab else None,
        ticket_cache=None if with_keytab else texts.get("ticketCache"),
    )
