"""TLS contexts: what they load, and the use of certificates that are replaced while a process lives."""

from __future__ import annotations

import logging
import os
import ssl
import weakref
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace

import pytest

from kit.fixtures.leftovers import collect_quietly
from pyspark_kafka._client.client.tls import contexts as contexts_module
from pyspark_kafka._client.client.tls.certificates import ParsedCertificate
from pyspark_kafka._client.client.tls.contexts import GRACE_S, TlsContexts, build_bare_context
from pyspark_kafka._client.options import CertificateStore, Secret, TlsOptions
from pyspark_kafka.errors import OptionError
from pyspark_kafka.testing.secured.certificates import CertificateAuthority, IssuedCertificate

PASSWORD = "correct-horse"  # noqa: S105 - of stores that live for a test


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


def options(file: Path, password: str | None = None, **changes: Secret) -> TlsOptions:
    store = CertificateStore(str(file), password=None if password is None else Secret(password))
    return TlsOptions(keystore=store, **changes)  # type: ignore[arg-type]


def own_names(contexts: TlsContexts, tls: TlsOptions) -> str:
    own = contexts.get(tls).own
    assert own is not None
    return own.subject.partition(",")[0]


def open_descriptors() -> int:
    # Descriptors in the garbage of earlier tests would be closed at any time.
    collect_quietly()
    return sum(1 for _ in Path("/dev/fd").iterdir())


def in_place(file: Path, content: bytes) -> None:
    file.write_bytes(content)


def by_rename(file: Path, content: bytes) -> None:
    new = file.with_suffix(".new")
    new.write_bytes(content)
    new.replace(file)


def with_the_same_times(file: Path, content: bytes) -> None:
    """As two writes within one tick of the clock of files, of contents of one size."""
    before = file.stat()
    file.write_bytes(content.ljust(before.st_size, b"\n")[: max(before.st_size, len(content))])
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("replace", [in_place, by_rename, with_the_same_times])
def test_replaced_store_is_loaded_for_the_next_connection(
    authority: CertificateAuthority, replace: Callable[[Path, bytes], None], tmp_path: Path
) -> None:
    file = tmp_path / "client.pem"
    file.write_bytes(authority.issue(user="alice").pem + b"\n" * 100)
    contexts, tls = TlsContexts(), options(file)
    assert own_names(contexts, tls) == "CN=alice"
    assert contexts.get(tls) is contexts.get(tls)
    replace(file, authority.issue(user="bobby").pem)
    assert own_names(contexts, tls) == "CN=bobby"


def test_store_behind_swapped_links_is_loaded_for_the_next_connection(
    authority: CertificateAuthority, tmp_path: Path
) -> None:
    """As Kubernetes does it: the file is a link into `..data`, and that a link to a folder, which is replaced."""
    for user in ("alice", "bob"):
        (tmp_path / user).mkdir()
        (tmp_path / user / "client.p12").write_bytes(authority.issue(user=user).pkcs12(PASSWORD))
    (tmp_path / "..data").symlink_to("alice")
    (tmp_path / "client.p12").symlink_to("..data/client.p12")
    contexts, tls = TlsContexts(), options(tmp_path / "client.p12", PASSWORD)
    assert own_names(contexts, tls) == "CN=alice"
    (tmp_path / "..new").symlink_to("bob")
    (tmp_path / "..new").replace(tmp_path / "..data")
    assert own_names(contexts, tls) == "CN=bob"


@pytest.mark.parametrize("kind", ["pem", "p12"])
def test_half_written_store_is_not_used_and_is_warned_of_once(
    authority: CertificateAuthority, kind: str, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    def content(issued: IssuedCertificate) -> bytes:
        return issued.pem if kind == "pem" else issued.pkcs12(PASSWORD)

    file = tmp_path / f"client.{kind}"
    file.write_bytes(content(authority.issue(user="alice")))
    contexts, tls = TlsContexts(), options(file, PASSWORD if kind == "p12" else None)
    before = contexts.get(tls)
    new = content(authority.issue(user="bob"))
    file.write_bytes(new[: len(new) // 2])
    with caplog.at_level(logging.WARNING):
        assert [contexts.get(tls) for _ in range(3)] == [before] * 3
    (warning,) = [record.getMessage() for record in caplog.records]
    assert "option 'kafka.ssl.keystore.location'" in warning
    assert warning.endswith("Those loaded before are still used.")
    assert PASSWORD not in warning
    file.write_bytes(new)
    assert own_names(contexts, tls) == "CN=bob"


def test_missing_store_is_an_error_at_first_and_a_warning_later(
    authority: CertificateAuthority, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    file = tmp_path / "client.pem"
    contexts, tls = TlsContexts(), options(file)
    with pytest.raises(OptionError, match="TLS_FILES_INVALID"):
        contexts.get(tls)
    assert contexts.known(tls) is None
    file.write_bytes(authority.issue(user="alice").pem)
    context = contexts.get(tls)
    file.unlink()
    assert contexts.get(tls) is contexts.known(tls) is context
    assert "cannot be read on host" in caplog.text


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def damaged(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-200])


@pytest.mark.parametrize("withdraw", [Path.unlink, emptied, damaged])
def test_trust_that_is_taken_back_ends_after_the_time_of_a_replacement(
    authority: CertificateAuthority,
    withdraw: Callable[[Path], None],
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    file, now = tmp_path / "trusted.pem", [100.0]
    content = authority.pem
    file.write_bytes(content)
    contexts, tls = TlsContexts(lambda: now[0]), TlsOptions(truststore=CertificateStore(str(file)))
    before = contexts.get(tls)
    withdraw(file)
    for now[0] in (200.0, 200.0 + GRACE_S - 1):
        assert contexts.get(tls) is before
    assert "Those loaded before are still used, for 60 s at most." in caplog.text
    now[0] = 200.0 + GRACE_S
    for _ in range(2):
        with pytest.raises(OptionError, match=r"TLS_FILES_INVALID.*'kafka\.ssl\.truststore\.location'"):
            contexts.get(tls)
    file.write_bytes(content)
    assert contexts.get(tls).trusted == before.trusted
    withdraw(file)
    assert contexts.get(tls).trusted == before.trusted, "another replacement has a time of its own"


def test_broken_keystore_does_not_keep_an_authority_trusted_that_was_replaced(
    authority: CertificateAuthority, tmp_path: Path
) -> None:
    trusted, own, now = tmp_path / "trusted.pem", tmp_path / "own.pem", [0.0]
    trusted.write_bytes(authority.pem)
    own.write_bytes(authority.issue(user="alice").pem)
    tls = TlsOptions(truststore=CertificateStore(str(trusted)), keystore=CertificateStore(str(own)))
    contexts = TlsContexts(lambda: now[0])
    before = contexts.get(tls)
    own.unlink()
    now[0] = 1e6
    assert contexts.get(tls) is before
    trusted.write_bytes(CertificateAuthority(tmp_path).pem)
    assert contexts.get(tls) is before
    now[0] += GRACE_S
    with pytest.raises(OptionError, match=r"'kafka\.ssl\.keystore\.location'"):
        contexts.get(tls)


def test_certificates_of_the_system_are_loaded_again_when_they_are_replaced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "ca-certificates.crt"
    file.write_text("one")
    paths = SimpleNamespace(cafile=str(file), capath=str(tmp_path / "absent"))
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: paths)
    contexts = TlsContexts()
    before = contexts.get(TlsOptions())
    assert contexts.get(TlsOptions()) is before
    by_rename(file, b"two")
    assert contexts.get(TlsOptions()) is not before


def test_password_that_is_renewed_where_it_refers_to_opens_the_renewed_store(
    authority: CertificateAuthority, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "client.p12"
    file.write_bytes(authority.issue(user="alice").pkcs12("first-password"))
    tls = TlsOptions(keystore=CertificateStore(str(file), password=Secret.parse("env:STORE_PASSWORD")))
    contexts = TlsContexts()
    monkeypatch.setenv("STORE_PASSWORD", "first-password")
    assert own_names(contexts, tls) == "CN=alice"
    file.write_bytes(authority.issue(user="bob").pkcs12("second-password"))
    assert own_names(contexts, tls) == "CN=alice"
    monkeypatch.setenv("STORE_PASSWORD", "second-password")
    assert own_names(contexts, tls) == "CN=bob"


def test_context_that_was_replaced_is_let_go(authority: CertificateAuthority, tmp_path: Path) -> None:
    file = tmp_path / "client.pem"
    file.write_bytes(authority.issue(user="alice").pem)
    contexts, tls = TlsContexts(), options(file)
    former = weakref.ref(contexts.get(tls).context)
    file.write_bytes(authority.issue(user="bob").pem)
    contexts.get(tls)
    collect_quietly()
    assert former() is None


def test_contexts_are_kept_for_a_bounded_number_of_options() -> None:
    contexts = TlsContexts()
    tls = [TlsOptions(ciphers=f"AES128-GCM-SHA256{':AES128-SHA' * number}") for number in range(20)]
    for each in tls:
        contexts.get(each)
    assert [contexts.known(each) is not None for each in tls] == [False] * 4 + [True] * 16


def test_key_of_another_certificate_is_refused(authority: CertificateAuthority) -> None:
    alice, bob = authority.issue(user="alice"), authority.issue(user="bob")
    store = CertificateStore(certificates=Secret(bob.chain_pem.decode()), key=Secret(alice.key_pem.decode()))
    with pytest.raises(OptionError, match=r"does not belong to its first certificate \(CN=bob") as caught:
        TlsContexts().get(TlsOptions(keystore=store))
    assert "Put the key's own certificate first" in str(caught.value)
    assert "'kafka.ssl.keystore.key'" in str(caught.value)


@pytest.mark.parametrize("password", ["wrong", ""])
def test_encrypted_key_needs_its_password(authority: CertificateAuthority, password: str) -> None:
    alice = authority.issue(user="alice")
    store = CertificateStore(
        certificates=Secret(alice.chain_pem.decode()), key=Secret(alice.encrypted_key_pem(PASSWORD).decode())
    )
    assert own_names(TlsContexts(), TlsOptions(keystore=store, key_password=Secret(PASSWORD))) == "CN=alice"
    with pytest.raises(OptionError, match="encrypted private key that this password does not open"):
        TlsContexts().get(TlsOptions(keystore=store, key_password=Secret(password)))


def test_private_keys_reach_openssl_through_no_file(authority: CertificateAuthority, tmp_path: Path) -> None:
    alice = authority.issue(user="alice")
    store = CertificateStore(
        certificates=Secret(alice.chain_pem.decode()), key=Secret(alice.encrypted_key_pem(PASSWORD).decode())
    )
    monitored = set(tmp_path.parent.rglob("*"))
    descriptors = open_descriptors()
    assert own_names(TlsContexts(), TlsOptions(keystore=store, key_password=Secret(PASSWORD))) == "CN=alice"
    assert open_descriptors() == descriptors
    assert set(tmp_path.parent.rglob("*")) == monitored


def test_pipes_stand_in_where_the_system_has_no_files_in_memory(
    authority: CertificateAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    alice = authority.issue(user="alice")
    # More than a pipe holds.
    chain = alice.chain_pem + authority.pem * 100
    store = CertificateStore(certificates=Secret(chain.decode()), key=Secret(alice.key_pem.decode()))
    descriptors = open_descriptors()
    assert own_names(TlsContexts(), TlsOptions(keystore=store)) == "CN=alice"
    broken = CertificateStore(certificates=Secret(chain.decode()), key=Secret(alice.encrypted_key_pem("x").decode()))
    with pytest.raises(OptionError):
        TlsContexts().get(TlsOptions(keystore=broken, key_password=Secret("y")))
    assert open_descriptors() == descriptors


def test_first_of_several_keys_is_named(
    authority: CertificateAuthority, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    file = tmp_path / "client.pem"
    file.write_bytes(authority.issue(user="alice").pem + authority.issue(user="bob").key_pem)
    assert own_names(TlsContexts(), options(file)) == "CN=alice"
    assert "has 2 private keys. The first one is used, with the certificate of CN=alice" in caplog.text


def test_client_certificate_that_ends_soon_is_warned_of_once(
    authority: CertificateAuthority, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    now = datetime.now(timezone.utc)
    for user, days, verb in (("soon", 6, "expires on"), ("later", 8, ""), ("over", -1, "expired on")):
        ends = now + timedelta(days=days)
        file = tmp_path / f"{user}.pem"
        file.write_bytes(authority.issue(user=user, not_before=now - timedelta(days=30), not_after=ends).pem)
        caplog.clear()
        for contexts in (TlsContexts(), TlsContexts()):
            contexts.get(options(file))
        texts = [record.getMessage() for record in caplog.records]
        assert len(texts) == (1 if verb else 0)
        if verb:
            assert f"option 'kafka.ssl.keystore.location' (CN={user}" in texts[0]
            assert f"{verb} {ends:%Y-%m-%d %H:%M} UTC" in texts[0]


def test_context_is_no_weaker_than_the_options_say() -> None:
    context = build_bare_context(TlsOptions())
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert (context.minimum_version, context.maximum_version) == (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
    only = build_bare_context(TlsOptions(versions=("TLSv1.2",), ciphers="ECDHE-RSA-AES128-GCM-SHA256"))
    assert only.maximum_version is ssl.TLSVersion.TLSv1_2
    older = [each["name"] for each in only.get_ciphers() if each["protocol"] == "TLSv1.2"]
    assert older == ["ECDHE-RSA-AES128-GCM-SHA256"]
    unchecked = build_bare_context(TlsOptions(check_hostname=False))
    assert unchecked.verify_mode is ssl.CERT_REQUIRED


def test_ciphers_that_openssl_does_not_have_are_an_option_error() -> None:
    with pytest.raises(OptionError, match=r"\[TLS_CIPHERS_MISSING\] .*kafka.ssl.cipher.suites"):
        TlsContexts().get(TlsOptions(ciphers="NONE-OF-THESE"))


def test_warnings_are_bounded(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(contexts_module, "_MAX_WARNED", 0)
    now = datetime.now(timezone.utc)
    parameters = ParsedCertificate("CN=x", "CN=y", (), now, now, is_authority=False, der=b"x")
    contexts_module.warn_of_end(parameters, "It")
    assert caplog.text == ""
