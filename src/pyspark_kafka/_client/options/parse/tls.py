"""Parsers of TLS: versions, cipher suites, types of stores.

Suites have the names of Java and of the IANA registry; OpenSSL has names of its own.
"""

from __future__ import annotations

import re

from pyspark_kafka._client.options.parse.scalars import shown_word

VERSIONS = ("TLSv1.2", "TLSv1.3")
STORE_TYPES = ("PEM", "PKCS12", "JKS")
# All that OpenSSL offers by default. Python cannot choose among them.
TLS13_SUITES = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")

_OLD = ("SSL", "SSLV2", "SSLV3", "TLSV1", "TLSV1.1")
_KEY_EXCHANGES = {
    "ECDHE_ECDSA": "ECDHE-ECDSA-",
    "ECDHE_RSA": "ECDHE-RSA-",
    "DHE_RSA": "DHE-RSA-",
    "RSA": "",
}
_CIPHERS = {
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
    "AES_256_CBC_SHA384": "AES256-SHA384",
    "AES_256_CBC_SHA256": "AES256-SHA256",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_128_CBC_SHA": "AES128-SHA",
}
# What the rules above would make, though there is no such suite.
_MISSING = re.compile(r"TLS_(?:RSA_WITH_CHACHA20.*|(?:RSA|DHE_RSA)_WITH_AES_256_CBC_SHA384|ECDHE_.*AES_256_CBC_SHA256)")
_SUITE = re.compile(r"TLS_([A-Z_]+)_WITH_([A-Z0-9_]+)")
# A name of Java, of the IANA registry, or of OpenSSL.
_SUITE_LIKE = re.compile(r"(?:TLS|SSL)_[A-Z0-9_]+|[A-Z0-9]+(?:-[A-Z0-9]+)+")
_WEAK = re.compile(r"NULL|EXPORT|ANON|RC4|RC2|DES|MD5")


def version(raw: str) -> str:
    """Read one version; `TLS` means all of them and is returned as `TLS`.

    Raises:
        ValueError: it is unknown, or too old.
    """
    name = raw.strip().upper()
    for known in (*VERSIONS, "TLS"):
        if name == known.upper():
            return known
    if name in _OLD:
        raise ValueError(f"must be TLSv1.2 or TLSv1.3; got '{raw}', which is broken (RFC 7568, RFC 8996) and refused")
    raise ValueError(f"must be TLSv1.2 or TLSv1.3; got {shown_word(raw, *VERSIONS)}")


def versions(raw: str) -> tuple[str, ...]:
    """Read a list of versions, and return them from the oldest to the newest.

    Raises:
        ValueError: one of them is unknown or too old, or there is none.
    """
    found = {version(part) for part in raw.split(",") if part.strip()}
    if not found:
        raise ValueError("must list TLSv1.2, TLSv1.3, or both")
    return VERSIONS if "TLS" in found else tuple(sorted(found))


def cipher_suites(raw: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Read a list of suites.

    Returns:
        The suites of TLS 1.2 in OpenSSL's names, and the suites of TLS 1.3, both in the given order.

    Raises:
        ValueError: one of them is unknown or weak, or there is none.
    """
    older: list[str] = []
    newer: list[str] = []
    for part in raw.split(","):
        name = part.strip().upper()
        if not name:
            continue
        if name in TLS13_SUITES:
            newer.append(name)
            continue
        # Names that Java took over from SSL begin with it.
        found = _SUITE.fullmatch(re.sub("^SSL_", "TLS_", name))
        if _WEAK.search(name):
            raise ValueError(f"has a suite that does not protect: {_shown_suite(part.strip())}")
        if found is None or found[1] not in _KEY_EXCHANGES or found[2] not in _CIPHERS or _MISSING.fullmatch(found[0]):
            raise ValueError(
                f"has a suite that is unknown here: {_shown_suite(part.strip())}; use Java's names, such as "
                "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
            )
        older.append(_KEY_EXCHANGES[found[1]] + _CIPHERS[found[2]])
    if not older and not newer:
        raise ValueError("must list a cipher suite")
    return tuple(older), tuple(newer)


def _shown_suite(name: str) -> str:
    return f"'{name}'" if len(name) <= 60 and _SUITE_LIKE.fullmatch(name) else shown_word(name)


def store_type(raw: str) -> str:
    """Read the type of a store.

    Raises:
        ValueError: it is none that can be read.
    """
    name = raw.strip().upper()
    if name in STORE_TYPES:
        return name
    raise ValueError(
        f"must be PEM, PKCS12 or JKS; got {shown_word(raw, *STORE_TYPES)}. Convert the store: keytool -importkeystore "
        "-srckeystore <store> -destkeystore store.p12 -deststoretype PKCS12"
    )
