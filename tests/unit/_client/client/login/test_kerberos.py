"""GSSAPI: which credentials are used, and the error without any. The library of Kerberos is a stand-in."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from kit.texts import said
from pyspark_kafka._client.client.login.kerberos import KerberosMechanism
from pyspark_kafka._client.client.login.mechanism import ExchangeError
from pyspark_kafka._client.options import KerberosLogin
from pyspark_kafka.errors import MissingDependencyError, OptionError, TransportError


class Library(ModuleType):
    """As much of the package gssapi as the exchange uses: what it was asked for, and tokens that are texts."""

    def __init__(self) -> None:
        super().__init__("gssapi")
        self.asked: list[dict[str, Any]] = []
        self.failure: Exception | None = None
        self.flags = {"mutual"}
        library = self

        class Name(str):
            __slots__ = ()

            def __new__(cls, text: str, name_type: str = "") -> Name:  # noqa: PYI034 - Self is newer than Python 3.10
                return super().__new__(cls, f"{name_type}:{text}")

            def canonicalize(self, mechanism: str) -> str:
                return f"{self} ({mechanism})"

        class Wrapped:
            def __init__(self, message: bytes) -> None:
                self.message = message

        class SecurityContext:
            def __init__(self, **asked: Any) -> None:
                if library.failure is not None:
                    raise library.failure
                library.asked.append(asked)
                self.complete = False
                self.actual_flags = library.flags

            def step(self, token: bytes | None) -> bytes | None:
                if token == b"bad":
                    raise ValueError("secret detail")
                self.complete = token is not None
                return b"hello" if token is None else None

            def unwrap(self, token: bytes) -> Wrapped:
                return Wrapped(token)

            def wrap(self, message: bytes, encrypt: bool) -> Wrapped:
                assert not encrypt
                return Wrapped(message)

        def credentials(**asked: Any) -> dict[str, Any]:
            return asked

        self.Name, self.SecurityContext, self.Credentials = Name, SecurityContext, credentials
        self.NameType = type("NameType", (), {"hostbased_service": "host", "kerberos_principal": "principal"})
        self.RequirementFlag = type("RequirementFlag", (), {"mutual_authentication": "mutual"})
        self.MechType = type("MechType", (), {"kerberos": "krb5"})


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    library = Library()
    monkeypatch.setitem(sys.modules, "gssapi", library)
    return library


def test_exchange_ends_after_the_security_layer_is_chosen(library: Library) -> None:
    made = KerberosMechanism(KerberosLogin("broker"), "kafka-1")
    assert made.auth_bytes() == b"hello"
    made.receive(b"token")
    assert made.auth_bytes() == b""
    # Offers all layers, 64 KiB; the client takes none of them, with the size and the user that go with none.
    made.receive(b"\x07\x01\x00\x00")
    assert made.auth_bytes() == b"\x01\x00\x00\x00"
    assert made.is_done()
    made.receive(b"")
    assert made.is_authenticated()
    assert library.asked == [{"name": "host:broker@kafka-1 (krb5)", "creds": None, "usage": "initiate"}]


def test_a_keytab_is_used_with_a_cache_of_its_own(library: Library, tmp_path: Any) -> None:
    keytab = tmp_path / "k.tab"
    keytab.write_bytes(b"keys")
    made = KerberosMechanism(KerberosLogin(principal="ann@REALM", keytab=str(keytab)), "kafka-1")
    assert made.auth_bytes() == b"hello"
    (asked,) = library.asked
    assert asked["name"] == "host:kafka@kafka-1 (krb5)"
    assert asked["creds"]["name"] == "principal:ann@REALM"
    assert asked["creds"]["store"]["client_keytab"] == str(keytab)
    assert asked["creds"]["store"]["ccache"].startswith("MEMORY:")


def test_a_named_ticket_cache_is_used(library: Library) -> None:
    KerberosMechanism(KerberosLogin(ticket_cache="FILE:/cc"), "kafka-1")
    assert library.asked[0]["creds"] == {"name": None, "usage": "initiate", "store": {"ccache": "FILE:/cc"}}


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(MissingDependencyError, match=r"pyspark-kafka\[kerberos\]"):
        KerberosMechanism(KerberosLogin(), "kafka-1")


def test_a_missing_ticket_says_how_to_get_one(library: Library) -> None:
    library.failure = RuntimeError("No credentials\ncache found")
    with pytest.raises(TransportError) as caught:
        KerberosMechanism(KerberosLogin(), "kafka-1")
    assert said(caught.value) == (
        "[KERBEROS_TICKET_MISSING] SASL authentication (GSSAPI) for kafka/kafka-1 failed: RuntimeError: No credentials"
        "\\ncache found. Hint: Get a ticket with kinit on the driver and on every executor (klist shows it), or set "
        "keyTab and principal in kafka.sasl.jaas.config."
    )


@pytest.mark.usefixtures("library")
def test_a_keytab_that_is_not_there_is_named() -> None:
    with pytest.raises(TransportError, match=r"the keytab '/no/k\.tab' cannot be read.*klist -k"):
        KerberosMechanism(KerberosLogin(principal="ann", keytab="/no/k.tab"), "kafka-1")


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("token", [b"bad", b""])
def test_a_token_that_is_not_valid_ends_the_exchange(token: bytes) -> None:
    made = KerberosMechanism(KerberosLogin(), "kafka-1")
    if not token:
        made.receive(b"token")
    with pytest.raises(ExchangeError, match="the server's token is not valid"):
        made.receive(token)
    assert not made.is_authenticated()


@pytest.mark.parametrize("offer", [b"\x00\x01\x00\x00", b"\x02\x01\x00\x00", b"\x06\x01\x00\x00"])
@pytest.mark.usefixtures("library")
def test_a_server_without_the_layer_that_kafka_has_is_refused(offer: bytes) -> None:
    made = KerberosMechanism(KerberosLogin(), "kafka-1")
    made.receive(b"token")
    with pytest.raises(ExchangeError, match="wants a security layer, which Kafka does not have"):
        made.receive(offer)
    assert not made.is_authenticated()


def test_a_server_that_has_not_proved_who_it_is_is_refused(library: Library) -> None:
    library.flags = set()
    made = KerberosMechanism(KerberosLogin(), "kafka-1")
    made.receive(b"token")
    with pytest.raises(ExchangeError, match="the server has not proved who it is"):
        made.receive(b"\x07\x01\x00\x00")
    assert not made.is_authenticated()


@pytest.mark.usefixtures("library")
def test_bytes_after_the_end_of_the_exchange_are_refused() -> None:
    made = KerberosMechanism(KerberosLogin(), "kafka-1")
    made.receive(b"token")
    made.receive(b"\x07\x01\x00\x00")
    made.auth_bytes()
    with pytest.raises(ExchangeError, match="after the end of the exchange"):
        made.receive(b"more")


@pytest.mark.usefixtures("library")
def test_a_refusal_names_what_must_fit() -> None:
    assert "kafka.sasl.kerberos.service.name" in KerberosMechanism(KerberosLogin(), "kafka-1").refusal().hint


@pytest.mark.parametrize(
    ("login", "needed"),
    [
        (KerberosLogin("kafka"), "identity:kerberos"),
        (KerberosLogin("kafka", principal="ann"), "identity:kerberos"),
        (KerberosLogin("kafka", ticket_cache="KEYRING:persistent:0"), "identity:kerberos"),
        (KerberosLogin("kafka", ticket_cache="FILE:/tmp/krb5cc_ann"), "file:/tmp/krb5cc_ann"),
        (KerberosLogin("kafka", ticket_cache="/tmp/krb5cc_ann"), "file:/tmp/krb5cc_ann"),  # noqa: S108
        (KerberosLogin("kafka", keytab="/etc/hosts", principal="ann"), "file:/etc/hosts"),
    ],
)
@pytest.mark.usefixtures("library")
def test_credentials_are_used_only_if_the_process_allows_them(
    login: KerberosLogin, needed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_KAFKA_REFERENCES", "file:/run/secrets/")
    with pytest.raises(OptionError) as caught:
        KerberosMechanism(login, "broker")
    assert (caught.value.condition, caught.value.parameters["reference"]) == ("REFERENCE_NOT_ALLOWED", needed)
    monkeypatch.setenv("PYSPARK_KAFKA_REFERENCES", needed)
    assert KerberosMechanism(login, "broker").auth_bytes() == b"hello"
