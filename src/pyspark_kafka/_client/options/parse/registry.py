"""Parsers of the addresses and the logins of a schema registry."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from pyspark_kafka._client.options.parse.scalars import (
    location,
    secret,
    shorten,
    shown_address,
    shown_number,
    shown_word,
)
from pyspark_kafka._client.options.parse.times import duration_ms
from pyspark_kafka._client.options.values.secret import Secret

_BLANK_OR_CONTROL = re.compile(r"[\x00-\x20\x7f]")
_EXAMPLE = "e.g. 'https://registry-1:8081,https://registry-2:8081'"
_MAX_ADDRESSES = 20
_pem_path = location()


@dataclass(frozen=True, slots=True)
class RegistryAddresses:
    """The addresses of one schema registry.

    Attributes:
        urls: the addresses, without the credentials that were in them.
        login: `user:password`, if they were in the addresses.
    """

    urls: tuple[str, ...]
    login: Secret | None = None


def registry_addresses(raw: str) -> RegistryAddresses:
    """Read http and https URLs separated by commas; credentials in them are taken out, and never shown.

    Raises:
        ValueError: one of them is no such URL, or two have different credentials.
    """
    urls: list[str] = []
    logins: list[Secret] = []
    for entry in filter(None, (part.strip() for part in raw.split(","))):
        url, login = _address(entry)
        if url not in urls:
            urls.append(url)
        if login is not None and login not in logins:
            logins.append(login)
    if not urls:
        raise ValueError(f"must be the URL of a schema registry, {_EXAMPLE}; got an empty list")
    if len(urls) > _MAX_ADDRESSES:
        raise ValueError(f"must name at most {_MAX_ADDRESSES} addresses of one registry; got {len(urls)}")
    if len(logins) > 1:
        raise ValueError("has different credentials in its URLs, though all are addresses of one registry")
    return RegistryAddresses(tuple(urls), logins[0] if logins else None)


def _address(entry: str) -> tuple[str, Secret | None]:
    # The text before an @ may be a password, even if the rest is not a URL; so may the text in a query.
    shown = "a URL with '@' in it" if "@" in entry else shown_address(entry)
    wrong = ValueError(f"must be http or https URLs with a host, separated by commas, {_EXAMPLE}; got {shown}")
    try:
        parts = urlsplit(entry)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise wrong from None
    if _BLANK_OR_CONTROL.search(entry) or parts.scheme not in ("http", "https") or not host or port == 0:
        raise wrong
    if parts.query or parts.fragment:
        raise ValueError("must be URLs without a query and without a fragment; what stands there is not repeated")
    credentials, at, address = parts.netloc.rpartition("@")
    login = None
    if at:
        user, colon, password = credentials.partition(":")
        if not colon or not user:
            raise ValueError("has a URL with '@' in it, but not with both a user and a password before it")
        login = Secret(f"{unquote(user)}:{unquote(password)}")
    return f"{parts.scheme}://{address}{parts.path.rstrip('/')}", login


def is_unencrypted(url: str) -> bool:
    """Return whether a request to an http URL crosses a network: its host is not this machine's loopback."""
    parts = urlsplit(url)
    if parts.scheme != "http":
        return False
    import ipaddress  # noqa: PLC0415 - for http alone

    host = parts.hostname or ""
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host != "localhost"


def user_info(raw: str) -> Secret:
    """Read `user:password`, or a reference to it.

    Raises:
        ValueError: there is no colon; the sentence does not repeat the value.
    """
    found = secret(raw)
    if found.reference is None and ":" not in raw.strip().strip(":"):
        raise ValueError("must be user:password, or a reference to it such as env:REGISTRY_LOGIN")
    return found


def credentials_source(raw: str) -> str:
    """Read where user and password of a registry come from: USER_INFO or URL.

    Raises:
        ValueError: it is another word, among them one that Java's clients know.
    """
    word = raw.strip().upper()
    if word == "SASL_INHERIT":
        raise ValueError(
            "must be USER_INFO or URL; SASL_INHERIT is not supported: set schema.registry.basic.auth.user.info to "
            "user:password of the registry"
        )
    if word not in ("USER_INFO", "URL"):
        raise ValueError(f"must be USER_INFO or URL; got {shown_word(raw, 'USER_INFO')}")
    return word


def token_source(raw: str) -> str:
    """Read where the bearer token of a registry comes from: STATIC_TOKEN.

    Raises:
        ValueError: it is another word.
    """
    word = raw.strip().upper()
    if word != "STATIC_TOKEN":
        raise ValueError(
            "must be STATIC_TOKEN: set schema.registry.bearer.auth.token, which may refer to a function, "
            f"call:package.module:function; got {shown_word(raw, 'STATIC_TOKEN')}"
        )
    return word


def pem_location(raw: str) -> str:
    """Read the path of a PEM file under Java's name for it, which may be another kind of store there.

    Raises:
        ValueError: it has the name of another kind of store, or it is empty.
    """
    path = _pem_path(raw)
    if path.lower().endswith((".jks", ".p12", ".pfx", ".pkcs12")):
        raise ValueError(
            f"must be a PEM file; got {shorten(path)}. Convert it: openssl pkcs12 -in <store>.p12 -out <store>.pem"
        )
    return path


def pem_type(raw: str) -> str:
    """Read the type of a store of the registry, which must be PEM.

    Raises:
        ValueError: it differs.
    """
    if raw.strip().upper() != "PEM":
        shown = shown_word(raw, "PEM", "PKCS12", "JKS")
        raise ValueError(f"must be PEM: certificates and keys of a registry are read as PEM; got {shown}")
    return "PEM"


def host_check(raw: str) -> str:
    """Read how names in certificates are checked, which is `https`.

    Raises:
        ValueError: it is something else; the name in a registry's certificate is always checked.
    """
    if raw.strip().lower() != "https":
        raise ValueError("must be https: the host's name in the certificate of a registry is always checked")
    return "https"


def timeout_ms(raw: str) -> int:
    """Read how long one question to a registry may take, in milliseconds.

    Raises:
        ValueError: it is not a time span, or none that can be meant: 30 would be 30 ms.
    """
    found = duration_ms(raw)
    if not 100 <= found <= 600_000:
        raise ValueError(f"must be a time span from 100ms to 10m; got {shown_number(raw)}")
    return found
