"""Clients of a registry that are kept between questions, also over a fork of the process."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from pyspark_kafka._client.options import RegistryOptions
from pyspark_kafka._typed.registry import clients as clients_module
from pyspark_kafka._typed.registry.clients import Clients
from pyspark_kafka.errors import OptionError

URL = "http://registry:8081"


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> Clients:
    def opened(*_: Any) -> Any:
        return SimpleNamespace(clear_caches=lambda: None)

    monkeypatch.setattr(clients_module, "_open_client", opened)
    return Clients(RegistryOptions(urls=(URL,)))


def test_client_that_was_put_back_is_taken_again_for_its_address(clients: Clients) -> None:
    built_at, first = clients.take_client(URL)
    clients.put_back(URL, built_at, first)
    assert clients.take_client("http://other:8081")[1] is not first
    assert clients.take_client(URL) == (built_at, first)
    assert clients.take_client(URL)[1] is not first, "another thread has it"


def test_forked_process_opens_a_client_of_its_own(clients: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connection would be shared with the parent: each would read responses of the other."""
    clients.put_back(URL, *clients.take_client(URL))
    child = os.getpid() + 1
    kept = clients._kept[0][2]
    monkeypatch.setattr(os, "getpid", lambda: child)
    assert clients.take_client(URL)[1] is not kept


@pytest.mark.parametrize("name", ["ca_location", "certificate_location", "key_location"])
def test_file_of_a_certificate_is_read_only_if_the_process_allows_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_KAFKA_REFERENCES", "file:/run/secrets/")
    options = RegistryOptions(urls=(URL,), **{name: "/etc/x.pem"})  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"REFERENCE_NOT_ALLOWED.* asks for the file '/etc/x\.pem'"):
        Clients(options).take_client(URL)
