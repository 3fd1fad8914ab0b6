"""Stores as users have them: made by Java's keytool (tools/make_key_stores.py) or by OpenSSL, and faults in them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from pyspark_kafka._client.client.tls.certificates import parse_certificate
from pyspark_kafka._client.client.tls.der import max_iterations
from pyspark_kafka._client.client.tls.stores.certificate_store import KEYSTORE, TRUSTSTORE, fetch_store, parse_store
from pyspark_kafka._client.client.tls.stores.content import StoreContent
from pyspark_kafka._client.options import CertificateStore, Secret
from pyspark_kafka.errors import ConnectorError, MissingDependencyError, OptionError
from pyspark_kafka.version import install_command

STORES = Path(__file__).parents[5] / "golden" / "stores"
PASSWORD = Secret("changeit")
ALICE, AUTHORITY = "CN=alice,OU=Tests,O=Example", "CN=Test authority,O=Example"


def read(name: str, role: str, key_password: Secret | None = None, **changes: Any) -> StoreContent:
    store = CertificateStore(**{"location": str(STORES / name), "password": PASSWORD, **changes})
    return parse_store(fetch_store(store, role), store, role, key_password)


def subjects(certificates: tuple[bytes, ...]) -> list[str]:
    return [parse_certificate(each).subject for each in certificates]


def key_of(content: StoreContent) -> object:
    key = content.keys[0].key
    load = serialization.load_pem_private_key if key.startswith(b"-----") else serialization.load_der_private_key
    return load(key, None)


def write_pem(folder: Path, **options: Any) -> Path:
    """Write key and chain of the golden client as PEM, made by another library than ours."""
    found = pkcs12.load_pkcs12((STORES / "client.p12").read_bytes(), b"changeit")
    assert found.key is not None
    encryption = options.get("encryption", serialization.NoEncryption())
    form = options.get("form", serialization.PrivateFormat.PKCS8)
    key = found.key.private_bytes(serialization.Encoding.PEM, form, encryption)
    certificates = b"".join(
        each.certificate.public_bytes(serialization.Encoding.PEM)
        for each in (found.cert, *found.additional_certs)
        if each is not None
    )
    file = folder / "client.pem"
    file.write_bytes(key + certificates)
    return file


@pytest.mark.parametrize("kind", [None, "JKS", "PKCS12"])
@pytest.mark.parametrize("name", ["client.p12", "client.jks"])
def test_keystore_is_read_whichever_of_javas_types_is_named(name: str, kind: str | None, tmp_path: Path) -> None:
    content = read(name, KEYSTORE, kind=kind)
    (entry,) = content.keys
    assert entry.alias == "client"
    assert subjects(entry.chain) == [ALICE, AUTHORITY]
    assert "alice" not in repr(entry)
    pem = read(str(write_pem(tmp_path)), KEYSTORE)
    assert isinstance(key_of(content), type(key_of(pem)))
    assert content.keys[0].chain == pem.keys[0].chain


@pytest.mark.parametrize("name", ["truststore.p12", "truststore.jks", "authority.pem"])
def test_truststore_has_its_certificates(name: str) -> None:
    assert subjects(read(name, TRUSTSTORE).authorities) == [AUTHORITY]


@pytest.mark.parametrize("name", ["truststore-without-password.p12", "truststore.jks", "authority.pem"])
def test_truststore_needs_no_password_where_java_needs_none(name: str) -> None:
    assert subjects(read(name, TRUSTSTORE, password=None).authorities) == [AUTHORITY]


def test_truststore_with_a_key_trusts_the_certificate_of_the_key_as_in_java() -> None:
    assert subjects(read("client-key-password.jks", TRUSTSTORE).authorities) == [AUTHORITY, ALICE]


def test_key_of_a_jks_store_may_have_a_password_of_its_own() -> None:
    content = read("client-key-password.jks", KEYSTORE, Secret("other-key-password"))
    assert content.keys[0].key == read("client.jks", KEYSTORE).keys[0].key


@pytest.mark.parametrize("name", ["two-keys.jks", "two-keys.p12"])
def test_first_of_two_keys_is_read(name: str) -> None:
    content = read(name, KEYSTORE)
    assert len(content.keys) == 2
    assert subjects(content.keys[0].chain) == [ALICE, AUTHORITY]


@pytest.mark.parametrize(
    ("options", "encrypted"),
    [
        ({}, False),
        ({"encryption": serialization.BestAvailableEncryption(b"changeit")}, True),
        ({"form": serialization.PrivateFormat.TraditionalOpenSSL}, False),
        (
            {
                "form": serialization.PrivateFormat.TraditionalOpenSSL,
                "encryption": serialization.BestAvailableEncryption(b"changeit"),
            },
            True,
        ),
    ],
)
def test_pem_keystore_keeps_the_form_of_its_key(options: dict[str, Any], encrypted: bool, tmp_path: Path) -> None:
    (entry,) = read(str(write_pem(tmp_path, **options)), KEYSTORE, PASSWORD).keys
    assert entry.encrypted is encrypted
    assert serialization.load_pem_private_key(entry.key, b"changeit" if encrypted else None)


@pytest.mark.parametrize("line_end", ["\\n", "\r\n", " ", "\\r\\n"])
def test_pasted_texts_may_have_lost_their_line_ends(line_end: str, tmp_path: Path) -> None:
    text = write_pem(tmp_path).read_text()
    key, chain = text[: text.index("-----BEGIN CERT")], text[text.index("-----BEGIN CERT") :]
    store = CertificateStore(
        certificates=Secret(chain.replace("\n", line_end)), key=Secret(key.replace("\n", line_end))
    )
    content = parse_store(fetch_store(store, KEYSTORE), store, KEYSTORE, None)
    expected = read(str(tmp_path / "client.pem"), KEYSTORE)
    assert (content.keys[0].key, content.keys[0].chain) == (expected.keys[0].key, expected.keys[0].chain)


@pytest.mark.parametrize(
    ("name", "role", "changes", "text"),
    [
        ("missing.jks", TRUSTSTORE, {}, "cannot be read on host"),
        (".", TRUSTSTORE, {}, "cannot be read on host"),
        ("truststore.jks", TRUSTSTORE, {"password": Secret("no")}, "(JKS) cannot be opened: the password is wrong, or"),
        ("truststore.p12", TRUSTSTORE, {"password": Secret("no")}, "(PKCS12) cannot be opened: the password is wrong"),
        ("truststore.p12", TRUSTSTORE, {"password": None}, "(PKCS12) needs a password, or is damaged"),
        ("client.jks", KEYSTORE, {"password": None}, "(JKS) needs a password for the key 'client'"),
        ("client-key-password.jks", KEYSTORE, {}, "(JKS) has a key 'client' that this password does not open"),
        ("truststore.jks", KEYSTORE, {}, "no private key, but 1 trusted certificate: it is a truststore rather than"),
        ("truststore.p12", KEYSTORE, {}, "no private key, but 1 trusted certificate: it is a truststore rather than"),
        ("authority.pem", KEYSTORE, {}, "has 1 certificate, but no private key"),
        ("authority.pem", TRUSTSTORE, {"kind": "JKS"}, "is a PEM store, but 'kafka.ssl.truststore.type' says JKS"),
        ("client.jks", KEYSTORE, {"kind": "PEM"}, "is a JKS store, but 'kafka.ssl.keystore.type' says PEM"),
        ("client.p12", KEYSTORE, {"kind": "PEM"}, "is a PKCS12 store, but 'kafka.ssl.keystore.type' says PEM"),
        ("authority.pem", TRUSTSTORE, {"kind": "PEM"}, "is PEM, which has no store password"),
        ("client.jceks", KEYSTORE, {}, "is a JCEKS store, which cannot be read here"),
    ],
)
def test_store_that_cannot_be_used_says_why(name: str, role: str, changes: dict[str, Any], text: str) -> None:
    with pytest.raises(OptionError, match=r"\[TLS_FILES_INVALID\] The file .*Hint: ") as caught:
        read(name, role, **changes)
    assert text in str(caught.value)
    assert f"{role}.location" in str(caught.value)
    assert "changeit" not in str(caught.value)


@pytest.mark.parametrize(("part", "other"), [("tls.crt", "tls.key"), ("tls.key", "tls.crt")])
def test_certificate_and_key_in_two_files_are_answered_with_the_options_that_take_them(
    part: str, other: str, tmp_path: Path
) -> None:
    whole = write_pem(tmp_path).read_text()
    key, end, certificates = whole.partition("-----END PRIVATE KEY-----\n")
    (tmp_path / "tls.key").write_text(key + end)
    (tmp_path / "tls.crt").write_text(certificates)
    with pytest.raises(OptionError) as caught:
        read(str(tmp_path / part), KEYSTORE, password=None)
    option = {"tls.crt": "kafka.ssl.keystore.certificate.chain", "tls.key": "kafka.ssl.keystore.key"}
    assert f"{option[part]} to file:{tmp_path}/{part}" in caught.value.hint
    assert f"{option[other]} to file:PATH" in caught.value.hint
    # What the hint says works.
    store = CertificateStore(
        key=Secret.parse(f"file:{tmp_path}/tls.key"), certificates=Secret.parse(f"file:{tmp_path}/tls.crt")
    )
    content = parse_store(fetch_store(store, KEYSTORE), store, KEYSTORE, None)
    assert subjects(content.keys[0].chain) == [ALICE, AUTHORITY]


def der(pem: bytes) -> bytes:
    from cryptography import x509  # noqa: PLC0415

    return x509.load_pem_x509_certificate(pem).public_bytes(serialization.Encoding.DER)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "is empty"),
        (b"not a certificate", "is not PEM, PKCS12 or JKS: it begins with the bytes 6e 6f 74 20"),
        (b"-----BEGIN CERTIFICATE-----\nMIIB", "1 BEGIN lines, but only 0 whole blocks: it is cut off or damaged"),
        (b"-----BEGIN CERTIFICATE-----\n????\n-----END CERTIFICATE-----", "its 1st block (CERTIFICATE) is not base64"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "a certificate that cannot be read"),
        (b"-----BEGIN PKCS7-----\nAAAA\n-----END PKCS7-----", "no certificate and no private key, but PKCS7"),
        (b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", "it is a keystore rather than a truststore"),
        (der((STORES / "authority.pem").read_bytes()), "is a certificate in DER, not a store"),
        ((STORES / "truststore.jks").read_bytes()[:200], "cannot be opened: the password is wrong, or the file is dam"),
    ],
)
def test_truststore_of_other_bytes_says_what_they_are(content: bytes, text: str, tmp_path: Path) -> None:
    file = tmp_path / "store"
    file.write_bytes(content)
    with pytest.raises(OptionError) as caught:
        read(str(file), TRUSTSTORE)
    assert text in str(caught.value)


def test_keystore_without_what_it_needs_says_so(tmp_path: Path) -> None:
    whole = write_pem(tmp_path, encryption=serialization.BestAvailableEncryption(b"changeit")).read_bytes()
    with pytest.raises(OptionError, match=r"encrypted private key, and no password for it.*Hint: Set kafka.ssl.key.pa"):
        read(str(tmp_path / "client.pem"), KEYSTORE)
    (tmp_path / "client.pem").write_bytes(whole[: whole.index(b"-----BEGIN CERT")])
    with pytest.raises(OptionError, match="has a private key, but no certificate for it"):
        read(str(tmp_path / "client.pem"), KEYSTORE, PASSWORD)
    found = pkcs12.load_pkcs12((STORES / "client.p12").read_bytes(), b"changeit")
    assert found.key is not None
    (tmp_path / "key.der").write_bytes(
        found.key.private_bytes(
            serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    with pytest.raises(OptionError, match=r"is a private key in DER, not a store.*openssl pkey"):
        read(str(tmp_path / "key.der"), KEYSTORE)


@pytest.mark.parametrize("location", ["file:///etc/ca.pem", "s3://bucket/ca.pem", "dbfs:/ca.pem"])
def test_location_that_is_a_url_is_told_to_be_a_path(location: str) -> None:
    with pytest.raises(OptionError, match="Name a path of the local file system, not a URL"):
        fetch_store(CertificateStore(location), TRUSTSTORE)


def test_text_of_an_option_that_is_no_certificate_names_the_option() -> None:
    store = CertificateStore(certificates=Secret("Pl4nted"))
    with pytest.raises(OptionError, match=r"The text of option 'kafka.ssl.truststore.certificates' is not") as caught:
        parse_store(fetch_store(store, TRUSTSTORE), store, TRUSTSTORE, None)
    # Its first bytes may be those of a password that was pasted in the wrong place.
    assert "Pl4nted" not in str(caught.value)
    assert b"Pl4n".hex(" ") not in str(caught.value)


def test_pkcs12_without_cryptography_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.serialization", None)
    with pytest.raises(MissingDependencyError, match=re.escape(f"{install_command('stores')} on the driver")) as caught:
        read("truststore.p12", TRUSTSTORE)
    assert sys.executable in str(caught.value)
    # The other types need nothing.
    assert read("truststore.jks", TRUSTSTORE).kind == "JKS"
    assert read("authority.pem", TRUSTSTORE).kind == "PEM"


@pytest.mark.filterwarnings("ignore:PKCS#12 bundle could not be parsed as DER")
def test_pkcs12_store_without_lengths_is_read(tmp_path: Path) -> None:
    """As Bouncy Castle writes stores."""
    data = (STORES / "client.p12").read_bytes()
    (tmp_path / "ber.p12").write_bytes(b"\x30\x80" + data[4:] + b"\0\0")
    assert max_iterations((tmp_path / "ber.p12").read_bytes()) == max_iterations(data) == 10_000
    assert read(str(tmp_path / "ber.p12"), KEYSTORE).keys[0].alias == "client"


def test_store_that_asks_for_endless_iterations_is_refused() -> None:
    data = (STORES / "client.p12").read_bytes()
    few, many = b"\x02\x02\x27\x10", b"\x02\x04\x7f\xff\xff\xff"
    assert data.count(few) >= 1
    # The count of the MAC is the last field of the store: only the lengths around it change.
    store = CertificateStore("made-up.p12", password=PASSWORD)
    with pytest.raises(ConnectorError, match="asks for more than 5000000 iterations"):
        parse_store(_with_iterations(data, many), store, KEYSTORE, None)


def _with_iterations(data: bytes, count: bytes) -> bytes:
    """Return a PKCS#12 store whose MAC (the last element) asks for another count."""
    salt = b"\x04\x08saltsalt"
    digest = bytes.fromhex("3031300d060960864801650304020105000420") + bytes(32)
    mac = digest + salt + count
    body = data[4 : 4 + _whole(data[4:])[1]]
    rest = data[4 + len(body) :]
    content = rest[: sum(_whole(rest))]
    inner = body + content + b"\x30" + bytes([len(mac)]) + mac
    return b"\x30\x82" + len(inner).to_bytes(2, "big") + inner


def _whole(data: bytes) -> tuple[int, int]:
    """Return the sizes of the head and of the body of a DER element."""
    if data[1] < 0x80:
        return 0, 2 + data[1]
    count = data[1] & 0x7F
    return 2 + count, int.from_bytes(data[2 : 2 + count], "big")


@pytest.mark.parametrize("role", [KEYSTORE, TRUSTSTORE])
def test_file_of_a_store_is_read_only_if_the_process_allows_it(role: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_KAFKA_REFERENCES", "file:/run/secrets/")
    with pytest.raises(OptionError, match=f"REFERENCE_NOT_ALLOWED.*'{role}.location'"):
        read("client.p12", role)
    monkeypatch.setenv("PYSPARK_KAFKA_REFERENCES", f"file:{STORES}/")
    assert read("client.p12", role)
