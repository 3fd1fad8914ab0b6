from __future__ import annotations

import pytest

from pyspark_kafka._client.options import RegistryOptions, Secret
from pyspark_kafka._typed.registry import connect
from pyspark_kafka._typed.registry.connect import OpenRegistries, open_registry
from pyspark_kafka.errors import MissingDependencyError
from pyspark_kafka.version import install_command

URL = "http://localhost:8081"


def test_registry_is_the_same_for_equal_options() -> None:
    first = open_registry(RegistryOptions(urls=(URL,), basic_auth=Secret("me:one")))
    assert open_registry(RegistryOptions(urls=(URL,), basic_auth=Secret("me:one"))) is first
    assert open_registry(RegistryOptions(urls=(URL,), basic_auth=Secret("me:two"))) is not first


def test_forked_child_has_a_registry_of_its_own() -> None:
    process = [1]
    registries = OpenRegistries(lambda: process[0])
    inherited = registries.get(RegistryOptions(urls=(URL,)))
    process[0] = 2
    assert registries.get(RegistryOptions(urls=(URL,))) is not inherited


def test_registry_that_was_not_asked_for_long_is_forgotten() -> None:
    registries = OpenRegistries()
    options = [RegistryOptions(urls=(f"{URL}/{number}",)) for number in range(17)]
    first = registries.get(options[0])
    for each in options[1:16]:
        registries.get(each)
    assert registries.get(options[0]) is first
    registries.get(options[16])
    second = registries.get(options[0])
    assert second is first
    assert len(registries._registries) == 16


@pytest.mark.parametrize(
    ("options", "module", "extra"),
    [
        (RegistryOptions(urls=(URL + "/missing",)), "confluent_kafka", "registry"),
        (RegistryOptions(urls=(URL + "/missing",)), "cachetools", "registry"),
        (RegistryOptions(registry_name="missing"), "boto3", "glue"),
    ],
)
def test_extra_that_is_missing_is_named(
    options: RegistryOptions, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "find_spec", lambda name: None if name == module else object())
    with pytest.raises(MissingDependencyError) as caught:
        open_registry(options)
    assert caught.value.hint == f"Install it on the driver and on the executors: {install_command(extra)}."


def test_nothing_of_an_open_registry_shows_its_login() -> None:
    registry = open_registry(RegistryOptions(urls=(URL,), basic_auth=Secret("me:Pl4ntedS3cret")))
    assert "Pl4ntedS3cret" not in repr(registry)
    with pytest.raises(TypeError, match="cannot pickle"):
        __import__("pickle").dumps(registry)
