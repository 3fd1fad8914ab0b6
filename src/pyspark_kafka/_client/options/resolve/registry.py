"""The combined meaning of a schema registry's options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._client.options.parse.registry import RegistryAddresses, is_unencrypted
from pyspark_kafka._client.options.values.formats import RegistryOptions

if TYPE_CHECKING:
    from pyspark_kafka._client.options.catalogue.parsed import Parsed, Problems
    from pyspark_kafka._client.options.values.secret import Secret

_URL = "schema.registry.url"
_USER, _SOURCE = "schema.registry.basic.auth.user.info", "schema.registry.basic.auth.credentials.source"
_TOKEN, _TOKEN_SOURCE = "schema.registry.bearer.auth.token", "schema.registry.bearer.auth.credentials.source"
_ALLOWED = "schema.registry.allow.http.credentials"
_CA, _TRUSTSTORE = "schema.registry.ssl.ca.location", "schema.registry.ssl.truststore.location"
_CERTIFICATE, _KEYSTORE = "schema.registry.ssl.certificate.location", "schema.registry.ssl.keystore.location"
_KEY, _KEY_PASSWORD = "schema.registry.ssl.key.location", "schema.registry.ssl.key.password"
_TYPES = {"schema.registry.ssl.truststore.type": _TRUSTSTORE, "schema.registry.ssl.keystore.type": _KEYSTORE}
_TLS = (
    *(_CA, _TRUSTSTORE, _CERTIFICATE, _KEYSTORE, _KEY, _KEY_PASSWORD, *_TYPES),
    "schema.registry.ssl.endpoint.identification.algorithm",
)
_WITH_URL = (_USER, _SOURCE, _TOKEN, _TOKEN_SOURCE, _ALLOWED, *_TLS)
_REGION, _NAME = "schema.registry.region", "schema.registry.registry.name"
_GLUE = (_REGION, _NAME)
_TIMEOUT = "schema.registry.timeout"
REGISTRY_NAMES = (_URL, *_WITH_URL, *_GLUE, _TIMEOUT)


def resolve_registry(options: Parsed, problems: Problems, *, glue: bool) -> RegistryOptions | None:
    """Return how the registry is reached; None without a registry. Without addresses it is Glue.

    With `glue` keys or values have the wire format of Glue, which needs no option of the registry.
    """
    given = [name for name in REGISTRY_NAMES if options.attempted(name)]
    if options.attempted(_URL):
        _refuse_glue(options, problems, glue=glue)
        return _with_url(options, problems)
    beside = [name for name in given if name in _WITH_URL]
    if glue or any(name in given for name in _GLUE):
        for name in beside:
            problems.conflict(
                name,
                "is for a registry with a URL; the registry of Glue uses the login of AWS",
                f"Remove '{name}', or set '{_URL}' and remove the options of Glue.",
            )
        return RegistryOptions(**options.fields("registry"))
    if given:
        problems.missing(
            _URL,
            f"must be set with '{given[0]}': it says where the schema registry is",
            f"Set '{_URL}' to its address, such as https://registry:8081; or '{_REGION}' for a registry of Glue.",
        )
    return None


def _refuse_glue(options: Parsed, problems: Problems, *, glue: bool) -> None:
    for name in (name for name in _GLUE if options.attempted(name)):
        problems.conflict(
            name, f"is for a registry of Glue, but '{_URL}' names another one", f"Remove '{name}' or '{_URL}'."
        )
    if glue:
        problems.report(
            "OPTION_CONFLICT",
            f"Wire format 'glue' belongs to a Glue registry, but '{_URL}' names another registry.",
            f"Remove '{_URL}', or set the wire format that the writers of the topic use.",
            _URL,
        )


def _with_url(options: Parsed, problems: Problems) -> RegistryOptions:
    # An invalid one has its own problem, and the value is never used.
    addresses: RegistryAddresses = options[_URL] or RegistryAddresses(("https://invalid",))
    login = _login(options, problems, addresses)
    _check_tls(options, problems, addresses.urls)
    certificate = options[_CERTIFICATE] or options[_KEYSTORE]
    if (login or options.given(_TOKEN)) and not options[_ALLOWED] and any(map(is_unencrypted, addresses.urls)):
        problems.conflict(
            _URL,
            "is an http URL of another machine: the credentials of the registry would cross the network unencrypted",
            f"Use https; or set '{_ALLOWED}' to true and accept it.",
        )
    elif options[_ALLOWED] and any(map(is_unencrypted, addresses.urls)):
        problems.notes.append(
            f"With '{_ALLOWED}' the credentials of the schema registry cross the network unencrypted."
        )
    return RegistryOptions(
        urls=addresses.urls,
        basic_auth=login,
        ca_location=options[_CA] or options[_TRUSTSTORE],
        certificate_location=certificate,
        key_location=options[_KEY] or certificate,
        **options.fields("registry"),
    )


def _login(options: Parsed, problems: Problems, addresses: RegistryAddresses) -> Secret | None:
    """Return user and password; there is one place of them, whatever Java's option says."""
    in_url = addresses.login and addresses.login.for_option(_URL)
    source = options[_SOURCE]
    if in_url and options.attempted(_USER):
        problems.conflict(_USER, f"is given, but '{_URL}' has credentials in it as well", "Remove one of them.")
    found: Secret | None = options[_USER] or in_url
    if source == "USER_INFO" and not options.attempted(_USER):
        problems.missing(
            _USER,
            f"must be set with '{_SOURCE}' USER_INFO",
            "Set it to user:password, or to a reference such as env:REGISTRY_LOGIN.",
        )
    if source == "URL" and not in_url and options.given(_URL):
        problems.conflict(
            _SOURCE, f"is URL, but '{_URL}' has no credentials in it", f"Remove '{_SOURCE}', or set '{_USER}'."
        )
    if options.attempted(_TOKEN) and (in_url or options.attempted(_USER)):
        problems.conflict(
            _TOKEN, "is given beside a user and a password; a registry is asked with one of them", "Remove one of them."
        )
    if options.given(_TOKEN_SOURCE) and not options.attempted(_TOKEN):
        problems.missing(
            _TOKEN,
            f"must be set with '{_TOKEN_SOURCE}'",
            "Set it to the token, or to a reference such as env:REGISTRY_TOKEN.",
        )
    if options.given(_USER) and options[_USER].reference is None:
        problems.notes.append(
            f"Option '{_USER}' holds a password, which Spark shows in plans, of streams and of temporary views, and "
            "with them in its event log and its UI. Put it into a file, and set the option to file:PATH."
        )
    return found


def _check_tls(options: Parsed, problems: Problems, urls: tuple[str, ...]) -> None:
    given = [name for name in _TLS if options.attempted(name)]
    if given and not any(url.startswith("https") for url in urls):
        problems.conflict(
            given[0],
            f"is given, but '{_URL}' is not an https URL: connections would not be encrypted",
            f"Use https, or remove '{given[0]}'.",
        )
    for name, store in _TYPES.items():
        if options.attempted(name) and not options.attempted(store):
            problems.conflict(name, f"is given without '{store}'", f"Set '{store}', or remove '{name}'.")
    if options.attempted(_KEY) and not options.attempted(_CERTIFICATE):
        problems.missing(
            _CERTIFICATE,
            f"must be set with '{_KEY}'",
            "Set it to the PEM file of the certificate that belongs to the key.",
        )
    if options.attempted(_KEY_PASSWORD) and not any(map(options.attempted, (_KEY, _CERTIFICATE, _KEYSTORE))):
        problems.conflict(
            _KEY_PASSWORD, f"is given without '{_KEY}'", f"Set '{_KEY}' to the file of the key, or remove the password."
        )
