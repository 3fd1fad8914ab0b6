"""What certificates say is read as it was written; hostile bytes are refused, and their texts are harmless."""

from __future__ import annotations

import ipaddress
import random
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pyspark_kafka._client.client.tls.certificates import parse_certificate
from pyspark_kafka._client.client.tls.der import DerError, max_iterations

GOLDEN = Path(__file__).parents[4] / "golden" / "stores"
KEY = ec.generate_private_key(ec.SECP256R1())
FROM = datetime(2020, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


def certificate(common_name: str, *, until: datetime = FROM + timedelta(days=9), names: tuple[str, ...] = ()) -> bytes:
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.COUNTRY_NAME, "DE"),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Example"),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )
    builder = x509.CertificateBuilder(name, name, KEY.public_key(), 1, FROM, until)
    if names:
        listed: list[x509.GeneralName] = []
        for each in names:
            try:
                listed.append(x509.IPAddress(ipaddress.ip_address(each)))
            except ValueError:
                listed.append(x509.DNSName(each))
        listed.append(x509.RFC822Name("somebody@example.com"))
        builder = builder.add_extension(x509.SubjectAlternativeName(listed), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=not names, path_length=None), critical=True)
    return builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


@pytest.mark.parametrize(
    "until", [datetime(2049, 12, 31, tzinfo=timezone.utc), datetime(2051, 1, 1, tzinfo=timezone.utc)]
)
def test_certificate_is_read_with_names_and_times(until: datetime) -> None:
    names = ("kafka-1.example", "*.example", "10.0.0.1", "fd00::1")
    found = parse_certificate(certificate("Käfer", until=until, names=names))
    assert found.subject == found.issuer == "CN=Käfer,O=Example,C=DE"
    assert (found.not_before, found.not_after) == (FROM, until)
    assert found.names == names
    assert found.is_self_signed
    assert not found.is_authority
    assert parse_certificate(certificate("ca")).is_authority


def test_bytes_behind_a_certificate_are_no_part_of_it() -> None:
    der = certificate("x")
    assert parse_certificate(der + b"trust settings of OpenSSL").der == der


def test_lifetime_problem_has_the_date() -> None:
    found = parse_certificate(certificate("x"))
    assert found.lifetime_problem(FROM) == ""
    assert found.lifetime_problem(FROM - timedelta(seconds=1)) == "is not valid before 2020-01-02 03:04 UTC"
    assert found.lifetime_problem(FROM + timedelta(days=10)) == "expired on 2020-01-11 03:04 UTC"


def test_text_of_a_hostile_certificate_has_no_control_characters() -> None:
    found = parse_certificate(certificate("a\n[ERROR] \x1b[31mb"))
    assert found.subject == "CN=a?[ERROR] ?[31mb,O=Example,C=DE"


def test_part_of_a_name_forges_no_other_part() -> None:
    found = parse_certificate(certificate("kafka,O=Trusted Bank"))
    assert found.subject == "CN=kafka\\,O\\=Trusted Bank,O=Example,C=DE"


def test_long_name_of_a_hostile_certificate_is_cut() -> None:
    hostile = x509.Name([x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "x" * 60)] * 100)
    builder = x509.CertificateBuilder(hostile, hostile, KEY.public_key(), 1, FROM, FROM + timedelta(days=9))
    der = builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.DER)
    assert len(parse_certificate(der).subject) == 401
    assert parse_certificate(der).subject.endswith("…")


def test_cut_certificate_is_refused_at_any_length() -> None:
    der = certificate("x", names=("a.example",))
    for length in range(len(der)):
        with pytest.raises(DerError):
            parse_certificate(der[:length])


@pytest.mark.parametrize(
    "data", [b"", b"\x30", b"\x30\x80\x00\x00", b"\x30\x85\x01\x01\x01\x01\x01", b"\x30\x00", b"\x1f\x00"]
)
def test_bytes_that_are_no_certificate_are_refused(data: bytes) -> None:
    with pytest.raises(DerError):
        parse_certificate(data)


def test_iterations_that_a_store_or_a_key_asks_for_are_found() -> None:
    # keytool's default.
    assert max_iterations((GOLDEN / "client.p12").read_bytes()) == 10_000
    encryption = serialization.BestAvailableEncryption(b"password")
    encrypted = KEY.private_bytes(serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, encryption)
    assert max_iterations(encrypted) >= 2048
    plain = KEY.private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    assert max_iterations(plain) == 0


def test_encrypted_bytes_are_not_read_as_iterations() -> None:
    # This seed's bytes read as an octet string and an integer; about one store in 100,000 holds such bytes.
    encrypted = random.Random(188_947).randbytes(600)
    octets = b"\x04\x82" + len(encrypted).to_bytes(2, "big") + encrypted
    assert max_iterations(b"\x30\x82" + len(octets).to_bytes(2, "big") + octets) == 0


def test_nesting_without_an_end_is_left_at_a_bound() -> None:
    data = b""
    for _ in range(2000):
        size = len(data)
        head = bytes([size]) if size < 0x80 else b"\x83" + size.to_bytes(3, "big")
        data = b"\x30" + head + data
    assert max_iterations(data) == 0
