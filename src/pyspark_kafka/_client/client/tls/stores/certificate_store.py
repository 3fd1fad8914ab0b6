"""A truststore or keystore of the options; errors name its option."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.tls.certificates import parse_certificate
from pyspark_kafka._client.client.tls.der import INTEGER, SEQUENCE, DerError, max_iterations, read_sequence
from pyspark_kafka._client.client.tls.stores.content import KeyEntry, StoreContent, StoreError, host_name
from pyspark_kafka._client.client.tls.stores.jks import MAGIC, read_jks
from pyspark_kafka._client.client.tls.stores.pem import parse_pem
from pyspark_kafka._client.client.tls.stores.pkcs12 import MAX_ITERATIONS, read_pkcs12
from pyspark_kafka._client.options import HiddenBytes, check_reference
from pyspark_kafka.errors import OptionError

if TYPE_CHECKING:
    from pyspark_kafka._client.options import CertificateStore, Secret

TRUSTSTORE, KEYSTORE = "kafka.ssl.truststore", "kafka.ssl.keystore"
KEY_PASSWORD = "kafka.ssl.key.password"  # noqa: S105 - the name of an option
# Java's own store of all public authorities has 200 KB.
_MAX_BYTES = 16 << 20
# A sequence without a length that begins with version 3: Bouncy Castle writes stores like this.
_PKCS12_BER = b"\x30\x80\x02\x01\x03"
_JCEKS = b"\xce\xce\xce\xce"
_PEM, _PKCS12, _JKS = "PEM", "PKCS12", "JKS"
_TO_PKCS12 = "keytool -importkeystore -srckeystore <store> -destkeystore store.p12 -deststoretype PKCS12"


def fetch_store(store: CertificateStore, role: str) -> bytes:
    """Return a store's bytes: its file's present content, or the options' texts.

    Args:
        store: where it is.
        role: `TRUSTSTORE` or `KEYSTORE`.

    Raises:
        OptionError: the file cannot be read, or the administrator of this process does not allow it.
    """
    if store.location is None:
        texts = [each.reveal() for each in (store.key, store.certificates) if each is not None]
        return HiddenBytes("\n".join(texts).encode())
    check_reference("file", store.location, f"{role}.location")
    path = Path(store.location)
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        hint = "Name a file that exists on the driver and on every executor, and that this user can read."
        if "://" in store.location or store.location.startswith(("dbfs:", "file:", "hdfs:")):
            hint = "Name a path of the local file system, not a URL; it must exist on the driver and on every executor."
        raise store_error(role, store, f"cannot be read on host {host_name()}: {reason}", hint) from error
    if len(data) > _MAX_BYTES:
        raise store_error(role, store, f"has more than {_MAX_BYTES >> 20} MiB, so it is not a certificate store")
    if not data:
        raise store_error(role, store, "is empty")
    return HiddenBytes(data)


def parse_store(data: bytes, store: CertificateStore, role: str, key_password: Secret | None) -> StoreContent:
    """Read a store; a keystore has a key with a certificate then, a truststore has a certificate.

    Args:
        data: of `fetch_store`.
        store: its type and password. Java reads PKCS#12 and JKS under both names (`keystore.type.compat`), and so
            does this; without a type, the content says it.
        role: `TRUSTSTORE` or `KEYSTORE`.
        key_password: of the private key.

    Raises:
        OptionError: it cannot be read, or holds something else.
        MissingDependencyError: a PKCS#12 store without the package `cryptography`.
    """
    kind = _kind_of(data, store, role)
    if store.kind is not None and (store.kind == _PEM) != (kind == _PEM):
        raise store_error(
            role, store, f"is a {kind} store, but '{role}.type' says {store.kind}", f"Set {role}.type to {kind}."
        )
    if store.kind == _PEM and store.password is not None:
        raise store_error(
            role, store, "is PEM, which has no store password", f"Remove {role}.password; set {KEY_PASSWORD}."
        )
    try:
        content = _parse(data, kind, store, role, key_password)
        for each in (*content.trusted, *(each for entry in content.keys for each in entry.chain)):
            parse_certificate(each)
    except DerError as error:
        raise store_error(role, store, f"holds a certificate that cannot be read: {error}") from error
    except StoreError as error:
        hint = _password_hint(role, kind) if error.password else ""
        if error.lacks and kind == _PEM:
            hint = _two_files_hint(store, error.lacks)
        raise store_error(role, store, f"({kind}) {error}", hint) from error
    except UnicodeError:
        raise store_error(role, store, "has a password with characters that cannot be used") from None
    return content


def _parse(data: bytes, kind: str, store: CertificateStore, role: str, key_password: Secret | None) -> StoreContent:
    password = None if store.password is None else store.password.reveal()
    secret = None if key_password is None else key_password.reveal()
    if kind == _JKS:
        content = read_jks(data, password, secret, with_keys=role == KEYSTORE)
    elif kind == _PKCS12:
        content = read_pkcs12(data, password)
    else:
        content = _read_pem(data)
    if role == TRUSTSTORE and not content.authorities:
        raise StoreError(
            "has no certificate, but a private key: it is a keystore rather than a truststore"
            if content.keys
            else "has no certificate"
        )
    if role == KEYSTORE:
        if not content.keys:
            noun = "certificate" if len(content.trusted) == 1 else "certificates"
            if content.kind == _PEM:
                raise StoreError(f"has {len(content.trusted)} {noun}, but no private key", lacks="key")
            found = f"{len(content.trusted)} trusted {noun}"
            raise StoreError(f"has no private key, but {found}: it is a truststore rather than a keystore")
        entry = content.keys[0]
        if not entry.chain:
            raise StoreError("has a private key, but no certificate for it", lacks="certificate")
        if entry.encrypted and secret is None:
            raise StoreError("has an encrypted private key, and no password for it is given", password=True)
    return content


def _read_pem(data: bytes) -> StoreContent:
    try:
        blocks = parse_pem(data.decode("utf-8", "replace"))
    except ValueError as error:
        raise StoreError(f"is damaged: {error}") from None
    certificates = tuple(block.content for block in blocks if block.is_certificate)
    # The bytes behind a certificate of the form TRUSTED CERTIFICATE are OpenSSL's notes about trust.
    certificates = tuple(parse_certificate(each).der for each in certificates)
    keys = [block for block in blocks if block.is_key]
    if not certificates and not keys and blocks:
        raise StoreError(f"has no certificate and no private key, but {', '.join(sorted({b.label for b in blocks}))}")
    for key in keys[:1]:
        if max_iterations(key.content) > MAX_ITERATIONS:
            raise StoreError(f"asks for more than {MAX_ITERATIONS} iterations to derive a key")
    entries = tuple(
        KeyEntry("", key.text(), () if number else certificates, key.is_encrypted) for number, key in enumerate(keys)
    )
    return StoreContent(_PEM, entries, () if entries else certificates)


def _kind_of(data: bytes, store: CertificateStore, role: str) -> str:
    """Return PEM, PKCS12 or JKS, by the content."""
    if b"-----BEGIN " in data:
        return _PEM
    if data.startswith(MAGIC):
        return _JKS
    if data.startswith(_PKCS12_BER):
        return _PKCS12
    if data.startswith(_JCEKS):
        raise store_error(role, store, "is a JCEKS store, which cannot be read here", f"Convert it: {_TO_PKCS12}.")
    try:
        tags = [(tag, bytes(content[:4])) for tag, content in read_sequence(memoryview(data))]
    except DerError:
        tags = []
    if tags[:1] == [(INTEGER, b"\x03")]:
        return _PKCS12
    location = store.location or "the option"
    if tags[:1] and tags[0][0] == SEQUENCE:
        raise store_error(
            role,
            store,
            "is a certificate in DER, not a store",
            f"Convert it to PEM: openssl x509 -inform der -in {location} -out store.pem.",
        )
    if tags[:1] and tags[0][0] == INTEGER:
        raise store_error(
            role,
            store,
            "is a private key in DER, not a store",
            f"Convert it to PEM: openssl pkey -inform der -in {location} -out key.pem, and add the certificate.",
        )
    expected = store.kind or "PEM, PKCS12 or JKS"
    # A text of an option may be a password that was pasted in the wrong place.
    found = "" if store.location is None else f": it begins with the bytes {data[:4].hex(' ')}"
    raise store_error(role, store, f"is not {expected}{found}")


def _password_hint(role: str, kind: str) -> str:
    if kind == _PEM:
        return f"Set {KEY_PASSWORD} to the password of the private key."
    if role == TRUSTSTORE:
        return f"Set {role}.password to the password of the store."
    return f"Set {role}.password to the password of the store, and {KEY_PASSWORD} if the key has another password."


def _two_files_hint(store: CertificateStore, lacks: str) -> str:
    """Return what to do about a PEM keystore with one of its parts, as cert-manager and others write it."""
    if store.location is None:
        return f"Set {KEYSTORE}.key to the private key, and {KEYSTORE}.certificate.chain to its certificates."
    chain, key = f"file:{store.location}", "file:PATH of the private key"
    if lacks == "certificate":
        chain, key = "file:PATH of the certificates", f"file:{store.location}"
    return (
        f"If certificates and key are in two files, such as tls.crt and tls.key, remove {KEYSTORE}.location, and set "
        f"{KEYSTORE}.certificate.chain to {chain} and {KEYSTORE}.key to {key}. Otherwise put both into one file."
    )


def store_error(role: str, store: CertificateStore, text: str, hint: str = "") -> OptionError:
    """Build the error of a store that cannot be used.

    Args:
        role: `TRUSTSTORE` or `KEYSTORE`.
        store: the store.
        text: the end of a sentence whose subject is the store.
        hint: what to do; to check the file, if it is empty.
    """
    if store.location is not None:
        option, subject = f"{role}.location", f"The file '{store.location}' of option '{role}.location'"
    else:
        option = f"{role}.certificates" if role == TRUSTSTORE else f"{role}.key"
        subject = f"The text of option '{option}'"
        if role == KEYSTORE:
            subject = f"The text of options '{option}' and '{role}.certificate.chain'"
    return OptionError(
        f"{subject} {text}.",
        condition="TLS_FILES_INVALID",
        hint=hint or f"Check what {option} names, and {role}.type.",
        parameters={"option": option, "path": store.location or ""},
    )
