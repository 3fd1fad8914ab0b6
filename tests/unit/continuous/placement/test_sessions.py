"""The address at which executors find the driver, and the file system, by the kind of the session."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pyspark_kafka.continuous.placement import sessions
from pyspark_kafka.continuous.placement.sessions import address_of_driver, default_file_system, own_address_towards


def classic(**conf: str) -> Any:
    return SimpleNamespace(conf={name.replace("_", "."): value for name, value in conf.items()})


def test_tasks_of_the_drivers_own_jvm_use_the_loopback() -> None:
    for master in ("local", "local[2]", "local[*]"):
        assert address_of_driver(classic(spark_master=master, spark_driver_host="10.0.0.7")) == "127.0.0.1"


def test_executors_use_the_address_of_the_driver() -> None:
    for master in ("local-cluster[2,1,1024]", "spark://host:7077", "yarn", "k8s://host"):
        assert address_of_driver(classic(spark_master=master, spark_driver_host="10.0.0.7")) == "10.0.0.7"
    assert address_of_driver(classic(spark_master="yarn")) == "127.0.0.1"


def test_executors_of_a_remote_server_use_the_address_towards_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "is_connect", lambda _: True)
    asked: list[str] = []

    def towards(host: str) -> str:
        asked.append(host)
        return "192.0.2.9"

    monkeypatch.setattr(sessions, "own_address_towards", towards)
    session: Any = SimpleNamespace(conf={"spark.master": "yarn"}, client=SimpleNamespace(host="[2001:db8::1]"))
    assert address_of_driver(session) == "192.0.2.9"
    assert asked == ["2001:db8::1"]


def test_remote_server_that_runs_tasks_in_its_own_jvm_is_no_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "is_connect", lambda _: True)
    monkeypatch.setattr(sessions, "own_address_towards", lambda _: "192.0.2.9")
    session: Any = SimpleNamespace(conf={"spark.master": "local[4]"}, client=SimpleNamespace(host="server"))
    assert address_of_driver(session) == "192.0.2.9"


def test_address_of_the_sixth_version_has_no_brackets() -> None:
    session = classic(spark_master="yarn", spark_driver_host="[2001:db8::1]")
    assert address_of_driver(session) == "2001:db8::1"


class Probe:
    """Stands for a datagram socket: notes where it connects to, and sends nothing."""

    def __init__(self, noted: list[Any], *kind: Any) -> None:
        noted.append(kind)
        self._noted = noted

    def __enter__(self) -> Probe:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self._noted.append("closed")

    def connect(self, address: tuple[str, int]) -> None:
        self._noted.append(address)

    def getsockname(self) -> tuple[str, int]:
        return "192.0.2.9", 54321


def sockets(noted: list[Any]) -> Any:
    """Return what stands for Python's module."""
    return SimpleNamespace(socket=lambda *kind: Probe(noted, *kind), AF_INET="inet", SOCK_DGRAM="datagrams")


def test_routing_table_is_asked_for_the_way_and_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[Any] = []
    monkeypatch.setattr(sessions, "socket", sockets(noted))
    assert own_address_towards("198.51.100.1") == "192.0.2.9"
    assert noted == [("inet", "datagrams"), ("198.51.100.1", 9), "closed"]


def test_address_towards_an_unknown_name_is_the_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Any:
        raise OSError("no such name")

    monkeypatch.setattr(Probe, "connect", refuse)
    monkeypatch.setattr(sessions, "socket", sockets([]))
    assert own_address_towards("no-such-name.invalid") == "127.0.0.1"


def test_file_system_is_the_default_of_the_drivers_jvm() -> None:
    context = SimpleNamespace(hadoopConfiguration=lambda: {"fs.defaultFS": "hdfs://nn"})
    session: Any = SimpleNamespace(_jsc=context)
    assert default_file_system(session) == "hdfs://nn"
    # A client of Spark Connect has no JVM.
    assert default_file_system(classic()) is None
