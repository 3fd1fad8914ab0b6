"""How a registry is reached: TLS, logins, addresses with credentials, forked processes, and waits after an outage."""

from __future__ import annotations

import contextlib
import logging
import re
import socket
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kit.fakes.schema_registry import RegistryAnswer, SchemaRegistryServer
from pyspark_kafka._client.options import RegistryOptions, Secret
from pyspark_kafka._typed.registry import clients, inquiry
from pyspark_kafka._typed.registry.confluent import ConfluentRegistry
from pyspark_kafka._typed.registry.guard import Guard
from pyspark_kafka.errors import OptionError, RegistryError
from pyspark_kafka.testing.secured.certificates import CertificateAuthority

LONG = '"long"'
PASSWORD = "Pl4ntedS3cret"  # noqa: S105 - of a server of a test
NOPE = Secret.parse("env:NOPE_X")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


def refused(options: RegistryOptions) -> RegistryError:
    with pytest.raises(RegistryError) as caught:
        ConfluentRegistry(options).schema_by_id(1)
    return caught.value


def test_registry_is_asked_over_tls_if_its_authority_is_trusted(authority: CertificateAuthority) -> None:
    with SchemaRegistryServer(authority=authority) as server:
        server.add("orders-value", LONG)
        options = RegistryOptions(urls=(server.url,), timeout_ms=5_000)
        trusted = replace(options, ca_location=str(authority.file))
        assert ConfluentRegistry(trusted).schema_by_id(1).text == LONG
        error = refused(options)
        assert server.count() == 1
    assert (error.condition, error.retriable) == ("REGISTRY_UNREACHABLE", False)
    assert "its certificate was not accepted: " in error.message
    assert "schema.registry.ssl.ca.location" in error.hint


# httpx leaves the socket of a refused login to the collector, which comes when it likes.
@pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")
def test_client_shows_its_certificate(authority: CertificateAuthority) -> None:
    issued = authority.issue(user="spark")
    certificate = authority.write(issued.chain_pem, "client.pem")
    key = authority.write(issued.encrypted_key_pem(PASSWORD), "client.key")
    with SchemaRegistryServer(authority=authority, asks_for_certificate=True) as server:
        server.add("orders-value", LONG)
        without = RegistryOptions(urls=(server.url,), ca_location=str(authority.file), timeout_ms=500)
        options = replace(
            without,
            certificate_location=str(certificate),
            key_location=str(key),
            key_password=Secret(PASSWORD),
            timeout_ms=20_000,
        )
        assert ConfluentRegistry(options).schema_by_id(1).text == LONG
        assert refused(without).condition == "REGISTRY_UNREACHABLE"
        for wrong in (Secret("other"), None):
            with pytest.raises(OptionError) as caught:
                ConfluentRegistry(replace(options, key_password=wrong)).schema_by_id(1)
            assert caught.value.condition == "TLS_FILES_INVALID"


def test_file_that_is_missing_is_named(tmp_path: Path) -> None:
    options = RegistryOptions(urls=("https://localhost:1",), certificate_location=str(tmp_path / "none.pem"))
    with pytest.raises(OptionError, match=r"TLS_FILES_INVALID.*No such file or directory. Nothing was asked"):
        ConfluentRegistry(options).schema_by_id(1)


def test_users_log_in_with_a_password_or_a_token() -> None:
    with SchemaRegistryServer(users={"me": f"{PASSWORD}:with:colons"}) as server:
        server.add("orders-value", LONG)
        options = RegistryOptions(urls=(server.url,), basic_auth=Secret(f"me:{PASSWORD}:with:colons"))
        assert ConfluentRegistry(options).schema_by_id(1).text == LONG
    with SchemaRegistryServer(token=PASSWORD) as server:
        server.add("orders-value", LONG)
        options = RegistryOptions(urls=(server.url,), bearer_token=Secret(PASSWORD))
        assert ConfluentRegistry(options).schema_by_id(1).text == LONG


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (PASSWORD + "\n", "begins or ends with a blank or a line end"),
        (PASSWORD + "\r\n", "begins or ends with a blank or a line end"),
        (" " + PASSWORD, "begins or ends with a blank or a line end"),
        (PASSWORD + "\x00\x01", "has characters that a header of HTTP cannot hold"),
        (PASSWORD + "\nX-Other: 1", "has characters that a header of HTTP cannot hold"),
        (PASSWORD + "\N{LATIN SMALL LETTER E WITH ACUTE}", "has characters that a header of HTTP cannot hold"),
        ("", "is empty"),
    ],
)
def test_token_that_no_header_can_hold_is_not_sent_and_not_shown(
    schema_registry: SchemaRegistryServer, token: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    options = RegistryOptions(urls=(schema_registry.url,), bearer_token=Secret(token), timeout_ms=2_000)
    with pytest.raises(OptionError) as caught:
        ConfluentRegistry(options).schema_by_id(1)
    assert (caught.value.condition, caught.value.retriable) == ("OPTION_INVALID", False)
    assert f"option 'schema.registry.bearer.auth.token' {reason}" in caught.value.message
    assert PASSWORD not in f"{caught.value} {caught.value.parameters} {caplog.text}"
    assert schema_registry.count() == 0


def test_header_that_the_library_refuses_is_not_quoted(
    schema_registry: SchemaRegistryServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(inquiry, "_TOKEN", re.compile(".*", re.DOTALL))
    options = RegistryOptions(urls=(schema_registry.url,), bearer_token=Secret(PASSWORD[:6] + "\n" + PASSWORD[6:]))
    error = refused(replace(options, timeout_ms=500))
    assert "the last: the request could not be sent (LocalProtocolError)" in error.message
    assert "the request could not be sent" in caplog.text
    assert PASSWORD[6:] not in f"{error} {error.parameters} {caplog.text}"


def test_token_of_a_variable_has_no_line_end(
    schema_registry: SchemaRegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGISTRY_TOKEN", PASSWORD + "\n")
    options = RegistryOptions(urls=(schema_registry.url,), bearer_token=Secret.parse("env:REGISTRY_TOKEN"))
    with pytest.raises(
        OptionError, match=r"^\[SECRET_UNAVAILABLE\] The secret 'env:REGISTRY_TOKEN' of option"
    ) as caught:
        ConfluentRegistry(options).schema_by_id(1)
    assert caught.value.condition == "SECRET_UNAVAILABLE"
    assert PASSWORD not in f"{caught.value} {caught.value.parameters}"


def test_token_of_a_function_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokens_of_a_test", SimpleNamespace(newest=lambda: PASSWORD))
    with SchemaRegistryServer(token=PASSWORD) as server:
        server.add("orders-value", LONG)
        options = RegistryOptions(urls=(server.url,), bearer_token=Secret.parse("call:tokens_of_a_test:newest"))
        assert ConfluentRegistry(options).schema_by_id(1).text == LONG


def test_line_end_of_a_file_is_no_part_of_a_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(PASSWORD + "\n")
    with SchemaRegistryServer(token=PASSWORD) as server:
        server.add("orders-value", LONG)
        options = RegistryOptions(urls=(server.url,), bearer_token=Secret.parse(f"file:{tmp_path / 'token'}"))
        assert ConfluentRegistry(options).schema_by_id(1).text == LONG


@pytest.mark.parametrize("login", [{"bearer_token": NOPE}, {"basic_auth": NOPE}])
def test_secret_that_is_missing_is_named(
    schema_registry: SchemaRegistryServer, login: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NOPE_X", raising=False)
    options = RegistryOptions(urls=(schema_registry.url,), **login)
    with pytest.raises(OptionError, match=r"'env:NOPE_X' is not available .* is not set") as caught:
        ConfluentRegistry(options).schema_by_id(1)
    assert caught.value.condition == "SECRET_UNAVAILABLE"
    assert schema_registry.count() == 0


@pytest.mark.parametrize(
    ("login", "reason"),
    [(PASSWORD, "is not user:password, as it has no colon"), (f"me:{PASSWORD}\udcff", "is not text in UTF-8")],
)
def test_login_that_is_none_is_not_sent_and_not_shown(
    schema_registry: SchemaRegistryServer, login: str, reason: str
) -> None:
    options = RegistryOptions(urls=(schema_registry.url,), basic_auth=Secret(login))
    with pytest.raises(OptionError) as caught:
        ConfluentRegistry(options).schema_by_id(1)
    assert caught.value.message.startswith(f"The value of option 'schema.registry.basic.auth.user.info' {reason}.")
    assert PASSWORD not in f"{caught.value} {caught.value.parameters}"
    assert schema_registry.count() == 0


def test_credentials_of_an_address_log_in_and_are_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with SchemaRegistryServer(users={"me": PASSWORD}) as server:
        server.add("orders-value", LONG)
        address = server.url.replace("://", f"://me:{PASSWORD}@")
        options = RegistryOptions(urls=(address,), timeout_ms=20_000)
        registry = ConfluentRegistry(options)
        assert registry.schema_by_id(1).text == LONG
    registry._access.options = replace(options, timeout_ms=500)
    with pytest.raises(RegistryError) as caught:
        registry.schema_by_id(1)
    assert server.url in caught.value.message
    assert PASSWORD not in f"{caught.value} {caught.value.parameters}"
    assert PASSWORD not in caplog.text


def test_password_that_is_renewed_applies_to_the_next_question(tmp_path: Path) -> None:
    login = tmp_path / "login"
    login.write_text("me:old")
    with SchemaRegistryServer(users={"me": "new"}) as server:
        server.add("orders-value", LONG)
        registry = ConfluentRegistry(RegistryOptions(urls=(server.url,), basic_auth=Secret.parse(f"file:{login}")))
        with pytest.raises(RegistryError, match="REGISTRY_REFUSED"):
            registry.schema_by_id(1)
        login.write_text("me:new")
        assert registry.schema_by_id(1).text == LONG


def test_tls_context_is_built_once_and_a_connection_is_used_once(
    schema_registry: SchemaRegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    build = clients._open_client

    def counted(url: str, options: RegistryOptions) -> object:
        opened.append(url)
        return build(url, options)

    monkeypatch.setattr(clients, "_open_client", counted)
    for number in range(3):
        schema_registry.add(f"s{number}", f'{{"type":"fixed","name":"F","size":{number}}}')
    registry = ConfluentRegistry(RegistryOptions(urls=(schema_registry.url,)))
    assert [registry.schema_by_id(number).schema_id for number in (1, 2, 3)] == [1, 2, 3]
    assert len(opened) == 1
    assert {each.headers["connection"] for each in schema_registry.requests} == {"close"}


def test_answers_of_the_client_are_not_kept(schema_registry: SchemaRegistryServer) -> None:
    registry = ConfluentRegistry(RegistryOptions(urls=(schema_registry.url,)))
    schema_registry.add("orders-value", LONG)
    schema = registry.schema_by_subject("orders-value", 1)
    assert registry.find_id("orders-value", schema) == 1
    schema_registry.remove("orders-value")
    assert registry.find_id("orders-value", schema) is None
    assert registry.register("orders-value", schema) == 1
    assert schema_registry.versions("orders-value") == [1]


def test_question_after_an_outage_waits_for_its_turn(
    schema_registry: SchemaRegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema_registry.add("orders-value", LONG)
    options = RegistryOptions(urls=(schema_registry.url,), timeout_ms=500)
    registry = ConfluentRegistry(options)
    schema_registry.stop()
    with pytest.raises(RegistryError, match="REGISTRY_UNREACHABLE"):
        registry.schema_by_id(1)
    # The registry that is back has more time than it takes.
    registry._access.options = replace(options, timeout_ms=20_000)
    # As after a longer outage, so that a slow machine is not too late for it.
    registry._access.backoff._not_before = time.monotonic() + 60
    schema_registry.start()
    waited: list[float] = []
    # Not of the module `time`: threads of other parts sleep as well.
    own = SimpleNamespace(monotonic=time.monotonic, sleep=waited.append)
    monkeypatch.setattr("pyspark_kafka._typed.registry.inquiry.time", own)
    assert registry.schema_by_id(1).text == LONG
    assert len(waited) == 1
    assert registry.schema_by_id(1).text == LONG
    assert len(waited) == 1


def test_address_that_swallows_packets_leaves_time_for_the_next(schema_registry: SchemaRegistryServer) -> None:
    schema_registry.add("orders-value", LONG)
    with socket.create_server(("127.0.0.1", 0), backlog=1) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        options = RegistryOptions(urls=(url, schema_registry.url), timeout_ms=3_000)
        assert ConfluentRegistry(options).schema_by_id(1).text == LONG


def test_proxy_of_the_environment_is_used(
    schema_registry: SchemaRegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema_registry.add("orders-value", LONG)
    monkeypatch.setenv("http_proxy", schema_registry.url)
    monkeypatch.setenv("no_proxy", "")
    options = RegistryOptions(urls=("http://registry.invalid:8081",), timeout_ms=5_000)
    assert ConfluentRegistry(options).schema_by_id(1).text == LONG
    assert schema_registry.requests[0].headers["host"] == "registry.invalid:8081"


def test_answer_over_tls_that_does_not_end_is_cut(authority: CertificateAuthority) -> None:
    with SchemaRegistryServer(authority=authority) as server:
        server.next_answers([RegistryAnswer(200, b"x" * 10_000, piecewise=True)] * 9)
        options = RegistryOptions(urls=(server.url,), ca_location=str(authority.file), timeout_ms=900)
        began = time.monotonic()
        assert refused(options).condition == "REGISTRY_UNREACHABLE"
        assert time.monotonic() - began < 30


def test_headers_that_do_not_end_are_cut() -> None:
    """Each byte comes in time: only the time of the whole question ends it."""
    stopped = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip() -> None:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                while not stopped.wait(0.02):
                    connection.sendall(b"x")

        thread = threading.Thread(target=drip)
        thread.start()
        options = RegistryOptions(urls=(f"http://127.0.0.1:{listener.getsockname()[1]}",), timeout_ms=700)
        began = time.monotonic()
        error = refused(options)
        assert time.monotonic() - began < 30
        stopped.set()
        thread.join()
    assert "no answer within 700 ms" in error.message


def test_time_of_a_question_begins_when_the_library_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first import in a process of Spark may take longer than the time, on a machine with a load of many cores."""
    clock = SimpleNamespace(now=time.monotonic())

    def load() -> Any:
        clock.now += 3600
        return clients.load_client_class()

    monkeypatch.setattr(inquiry, "load_client_class", load)
    monkeypatch.setattr(inquiry, "time", SimpleNamespace(monotonic=lambda: clock.now, sleep=time.sleep))
    ends: list[float] = []

    def guard(ends_at: float) -> Guard:
        ends.append(ends_at)
        return Guard(time.monotonic() + 60)

    monkeypatch.setattr(inquiry, "Guard", guard)
    with SchemaRegistryServer() as server:
        server.add("orders-value", LONG)
        assert ConfluentRegistry(RegistryOptions(urls=(server.url,), timeout_ms=5_000)).schema_by_id(1).text == LONG
    assert ends == [clock.now + 5]
