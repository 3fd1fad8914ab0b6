"""The combined meaning of the options of TLS: the stores, versions and ciphers, and unsafe combinations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._client.options.parse.tls import TLS13_SUITES, VERSIONS
from pyspark_kafka._client.options.values.tls import CertificateStore, TlsOptions

if TYPE_CHECKING:
    from pyspark_kafka._client.options.catalogue.parsed import Parsed, Problems

_TRUSTSTORE, _KEYSTORE = "kafka.ssl.truststore", "kafka.ssl.keystore"
_KEY_PASSWORD = "kafka.ssl.key.password"  # noqa: S105 - the name of an option
_HOST_CHECK = "kafka.ssl.endpoint.identification.algorithm"
_PROTOCOL, _VERSIONS, _SUITES = "kafka.ssl.protocol", "kafka.ssl.enabled.protocols", "kafka.ssl.cipher.suites"
_TEXTS = {_TRUSTSTORE: (".certificates",), _KEYSTORE: (".key", ".certificate.chain")}
# The options that have a meaning with TLS only.
TLS_OPTIONS = (
    *(f"{store}{name}" for store, texts in _TEXTS.items() for name in (".location", *texts, ".password")),
    _KEY_PASSWORD,
)


def resolve_tls(options: Parsed, problems: Problems) -> TlsOptions:
    """Return how connections are encrypted."""
    truststore, keystore = _store(options, problems, _TRUSTSTORE), _store(options, problems, _KEYSTORE)
    if options.given(_KEY_PASSWORD) and not _attempted(options, _KEYSTORE):
        problems.conflict(
            _KEY_PASSWORD,
            f"is given without '{_KEYSTORE}.location'",
            f"Set '{_KEYSTORE}.location' to the store of the key, or '{_KEYSTORE}.key' to its text; or remove the "
            "password.",
        )
    if not options[_HOST_CHECK]:
        problems.notes.append(
            f"Option '{_HOST_CHECK}' is empty: brokers' certificates are not checked for their names."
        )
    versions, ciphers = _versions_and_ciphers(options, problems)
    return TlsOptions(
        truststore=truststore, keystore=keystore, versions=versions, ciphers=ciphers, **options.fields("tls")
    )


def _attempted(options: Parsed, store: str) -> bool:
    return any(options.attempted(f"{store}{name}") for name in (".location", *_TEXTS[store]))


def _store(options: Parsed, problems: Problems, store: str) -> CertificateStore | None:
    """Return a store of the options, by the rules of Java's clients (`DefaultSslEngineFactory`)."""
    location, kind, password = f"{store}.location", f"{store}.type", f"{store}.password"
    texts = [f"{store}{name}" for name in _TEXTS[store]]
    given = [name for name in texts if options.attempted(name)]
    if not _attempted(options, store):
        if options.attempted(password):
            problems.conflict(
                password, f"is given without '{location}'", f"Set '{location}' to the store, or remove the password."
            )
        return None
    if given:
        if options.attempted(location):
            problems.report(
                "OPTION_CONFLICT",
                f"Options '{location}' and '{given[0]}' are both given.",
                f"Remove one of them: '{location}' is for one file with key and certificates; with two files, set "
                f"'{_KEYSTORE}.certificate.chain' and '{_KEYSTORE}.key' to file:PATH."
                if store == _KEYSTORE
                else "Remove one of them.",
                given[0],
            )
        for missing in (name for name in texts if name not in given):
            problems.missing(
                missing,
                f"must be set with '{given[0]}'",
                f"Set '{missing}' to file:PATH or to the PEM text; or name one file with both in '{location}'.",
            )
        if options.given(kind) and options[kind] != "PEM":
            problems.report(
                "OPTION_CONFLICT",
                f"Option '{given[0]}' is PEM text, but '{kind}' is {options[kind]}.",
                f"Set '{kind}' to PEM.",
                kind,
            )
    if options.given(password) and (given or options[kind] == "PEM"):
        extra = f"; set {_KEY_PASSWORD} if the key is encrypted" if store == _KEYSTORE else ""
        problems.conflict(password, "is given for PEM, which has no store password", f"Remove '{password}'{extra}.")
    key = options[f"{_KEYSTORE}.key"]
    if store == _KEYSTORE and key is not None and key.reference is None:
        problems.notes.append(
            f"Option '{_KEYSTORE}.key' holds a private key, which Spark shows in plans, of streams and of temporary "
            "views, and with them in its event log and its UI. Put it into a file, and set the option to file:PATH."
        )
    return CertificateStore(
        location=options[location],
        kind=options[kind],
        password=options[password],
        certificates=options[texts[-1]],
        key=options[texts[0]] if len(texts) > 1 else None,
    )


def _versions_and_ciphers(options: Parsed, problems: Problems) -> tuple[tuple[str, ...], str | None]:
    versions: tuple[str, ...] = options[_VERSIONS] or VERSIONS
    # As the newest version, not the only one: its meaning in Java's documentation.
    if options[_PROTOCOL] == VERSIONS[0]:
        versions = tuple(version for version in versions if version == VERSIONS[0])
        if not versions:
            problems.conflict(
                _PROTOCOL,
                f"allows at most {VERSIONS[0]}, and '{_VERSIONS}' only newer versions",
                f"Remove '{_PROTOCOL}'.",
            )
            return VERSIONS, None
    if not options.given(_SUITES):
        return versions, None
    older, newer = options[_SUITES]
    # A version without a suite of its own is not agreed on, as in Java.
    chosen = tuple(version for version, suites in zip(VERSIONS, (older, newer), strict=True) if suites)
    both = tuple(version for version in versions if version in chosen)
    if not both:
        problems.conflict(
            _SUITES,
            f"has no suite for {' or '.join(versions)}",
            f"Add suites of {' or '.join(versions)}, or change '{_VERSIONS}'.",
        )
        return VERSIONS, None
    if VERSIONS[1] in both and set(newer) != set(TLS13_SUITES):
        problems.notes.append(
            f"Option '{_SUITES}' lists some suites of TLS 1.3; OpenSSL offers all of its three, which are equally safe."
        )
    return both, ":".join(older) if VERSIONS[0] in both else None
