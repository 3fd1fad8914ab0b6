"""Certificates for a broker and its clients, in the forms that both read."""

from __future__ import annotations

import ssl
import sys
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from pyspark_kafka.errors import MissingDependencyError
from pyspark_kafka.testing.secured.certificates import CertificateAuthority

PASSWORD = "of a store"  # noqa: S105 - of a file of this test


def test_certificate_of_a_user_has_the_user_as_common_name_and_a_key_of_pkcs8(tmp_path: Path) -> None:
    issued = CertificateAuthority(tmp_path).issue(user="alice")
    certificate = x509.load_pem_x509_certificate(issued.chain_pem)
    assert [part.value for part in certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)] == ["alice"]
    assert issued.key_pem.startswith(b"-----BEGIN PRIVATE KEY-----")
    encrypted = issued.encrypted_key_pem(PASSWORD)
    assert encrypted.startswith(b"-----BEGIN ENCRYPTED PRIVATE KEY-----")
    assert serialization.load_pem_private_key(encrypted, PASSWORD.encode()) is not None


def test_stores_of_pkcs12_hold_what_they_are_for(tmp_path: Path) -> None:
    authority = CertificateAuthority(tmp_path)
    trusted = pkcs12.load_pkcs12(authority.trust_store("PKCS12", PASSWORD).read_bytes(), PASSWORD.encode())
    assert (trusted.key, len(trusted.additional_certs)) == (None, 1)
    issued = authority.issue(user="alice")
    held = pkcs12.load_pkcs12(authority.key_store(issued, "PKCS12", PASSWORD).read_bytes(), PASSWORD.encode())
    assert held.key is not None
    assert held.cert is not None


def test_files_are_their_owners_and_never_the_same(tmp_path: Path) -> None:
    authority = CertificateAuthority(tmp_path / "security")
    first, second = (authority.write(b"x", "a.pem") for _ in range(2))
    assert first != second
    assert {file.stat().st_mode & 0o777 for file in (first, second)} == {0o600}
    ssl.create_default_context(cafile=str(authority.file))


def test_package_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trustme", None)
    with pytest.raises(MissingDependencyError, match=r"MISSING_DEPENDENCY\].*'trustme'.*pyspark-kafka\[testing\]"):
        CertificateAuthority(tmp_path)
