"""What the options of a schema registry mean together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._client.options.parse.registry import RegistryAddresses, is_unencrypted
from pyspark_kafka._client.options.values.formats import RegistryOptions

if TYPE_CHECKING:
    from pyspark_kafka._client.options.resolve.collector import Collector
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


def resolve_registry(options: Collector, *, glue: bool) -> RegistryOptions | None:
    """Return how the registry is reached; problems go to the collector.

    Args:
        options: the options.
        glue: whether keys or values have the wire format of Glue, which needs no option of the registry.

    Returns:
        None without a registry; without addresses it is Glue.
    """
    given = [name for name in REGISTRY_NAMES if options.attempted(name)]
    if options.attempted(_URL):
        _refuse_glue(options, glue=glue)
        return _with_url(options)
    beside = [name for name in given if name in _WITH_URL]
    if glue or any(name in given for name in _GLUE):
        for name in beside:
            options.report(
                "OPTION_CONFLICT",
                f"Option '{name}' is for a registry with a URL; the registry of Glue uses the login of AWS.",
                f"Remove '{name}', or set '{_URL}' and remove the options of Glue.",
                name,
            )
        return RegistryOptions(**options.fields("registry"))
    if given:
        options.report(
            "OPTION_MISSING",
            f"Option '{_URL}' must be set with '{given[0]}': it says where the schema registry is.",
            f"Set '{_URL}' to its address, such as https://registry:8081; or '{_REGION}' for a registry of Glue.",
            _URL,
        )
    return None


def _refuse_glue(options: Collector, *, glue: bool) -> None:
    for name in (name for name in _GLUE if options.attempted(name)):
        options.report(
            "OPTION_CONFLICT",
            f"Option '{name}' is for a registry of Glue, but '{_URL}' names another one.",
            f"Remove '{name}' or '{_URL}'.",
            name,
        )
    if glue:
        options.report(
            "OPTION_CONFLICT",
            f"Wire format 'glue' belongs to a Glue registry, but '{_URL}' names another registry.",
            f"Remove '{_URL}', or set the wire format that the writers of the topic use.",
            _URL,
        )


def _with_url(options: Collector) -> RegistryOptions:
    # An invalid one has its own problem, and the value is never used.
    addresses: RegistryAddresses = options[_URL] or RegistryAddresses(("https://invalid",))
    login = _login(options, addresses)
    _check_tls(options, addresses.urls)
    certificate = options[_CERTIFICATE] or options[_KEYSTORE]
    if (login or options.given(_TOKEN)) and not options[_ALLOWED] and any(map(is_unencrypted, addresses.urls)):
        options.report(
            "OPTION_CONFLICT",
            f"Option '{_URL}' is an http URL of another machine: the credentials of the registry would cross the "
            "network unencrypted.",
            f"Use https; or set '{_ALLOWED}' to true and accept it.",
            _URL,
        )
    elif options[_ALLOWED] and any(map(is_unencrypted, addresses.urls)):
        options.notes.append(f"With '{_ALLOWED}' the credentials of the schema registry cross the network unencrypted.")
    return RegistryOptions(
        urls=addresses.urls,
        basic_auth=login,
        ca_location=options[_CA] or options[_TRUSTSTORE],
        certificate_location=certificate,
        key_location=options[_KEY] or certificate,
        **options.fields("registry"),
    )


def _login(options: Collector, addresses: RegistryAddresses) -> Secret | None:
    """Return user and password; there is one place of them, whatever Java's option says."""
    in_url = addresses.login and addresses.login.for_option(_URL)
    source = options[_SOURCE]
    if in_url and options.attempted(_USER):
        options.report(
            "OPTION_CONFLICT",
            f"Option '{_USER}' is given, but '{_URL}' has credentials in it as well.",
            "Remove one of them.",
            _USER,
        )
    found: Secret | None = options[_USER] or in_url
    if source == "USER_INFO" and not options.attempted(_USER):
        options.report(
            "OPTION_MISSING",
            f"Option '{_USER}' must be set with '{_SOURCE}' USER_INFO.",
            "Set it to user:password, or to a reference such as env:REGISTRY_LOGIN.",
            _USER,
        )
    if source == "URL" and not in_url and options.given(_URL):
        options.report(
            "OPTION_CONFLICT",
            f"Option '{_SOURCE}' is URL, but '{_URL}' has no credentials in it.",
            f"Remove '{_SOURCE}', or set '{_USER}'.",
            _SOURCE,
        )
    if options.attempted(_TOKEN) and (in_url or options.attempted(_USER)):
        options.report(
            "OPTION_CONFLICT",
            f"Option '{_TOKEN}' is given beside a user and a password; a registry is asked with one of them.",
            "Remove one of them.",
            _TOKEN,
        )
    if options.given(_TOKEN_SOURCE) and not options.attempted(_TOKEN):
        options.report(
            "OPTION_MISSING",
            f"Option '{_TOKEN}' must be set with '{_TOKEN_SOURCE}'.",
            "Set it to the token, or to a reference such as env:REGISTRY_TOKEN.",
            _TOKEN,
        )
    if options.given(_USER) and options[_USER].reference is None:
        options.notes.append(
            f"Option '{_USER}' holds a password, which Spark shows in plans, of streams and of temporary views, and "
            "with them in its event log and its UI. Put it into a file, and set the option to file:PATH."
        )
    return found


def _check_tls(options: Collector, urls: tuple[str, ...]) -> None:
    given = [name for name in _TLS if options.attempted(name)]
    if given and not any(url.startswith("https") for url in urls):
        options.report(
            "OPTION_CONFLICT",
            f"Option '{given[0]}' is given, but '{_URL}' is not an https URL: connections would not be encrypted.",
            f"Use https, or remove '{given[0]}'.",
            given[0],
        )
    for name, store in _TYPES.items():
        if options.attempted(name) and not options.attempted(store):
            options.report(
                "OPTION_CONFLICT",
                f"Option '{name}' is given without '{store}'.",
                f"Set '{store}', or remove '{name}'.",
                name,
            )
    if options.attempted(_KEY) and not options.attempted(_CERTIFICATE):
        options.report(
            "OPTION_MISSING",
            f"Option '{_CERTIFICATE}' must be set with '{_KEY}'.",
            "Set it to the PEM file of the certificate that belongs to the key.",
            _CERTIFICATE,
        )
    if options.attempted(_KEY_PASSWORD) and not any(map(options.attempted, (_KEY, _CERTIFICATE, _KEYSTORE))):
        options.report(
            "OPTION_CONFLICT",
            f"Option '{_KEY_PASSWORD}' is given without '{_KEY}'.",
            f"Set '{_KEY}' to the file of the key, or remove the password.",
            _KEY_PASSWORD,
        )
