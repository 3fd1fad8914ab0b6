"""tools/prepare_venv.py, which every target of the Makefile runs first: long steps print lines in a log."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import prepare_venv

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CONSTRAINTS = prepare_venv.ROOT / "tools" / "constraints"
WORKFLOW = prepare_venv.ROOT / ".github" / "workflows" / "test.yml"


def test_long_command_prints_what_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(prepare_venv, "INTERVAL_S", 0.05)
    assert prepare_venv.run([sys.executable, "-c", "import time; time.sleep(0.5)"], "pip install x") == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == "pip install x …"
    assert len(lines) >= 2
    assert all(re.fullmatch(r"pip install x … \d+ s", line) for line in lines)


def test_quick_command_prints_one_line_and_its_exit_code_is_returned(capsys: pytest.CaptureFixture[str]) -> None:
    assert prepare_venv.run([sys.executable, "-c", "raise SystemExit(7)"], "pip install x") == 7
    assert capsys.readouterr().out == "pip install x …\n"


def test_interval_is_shorter_than_the_promised_five_seconds() -> None:
    assert prepare_venv.INTERVAL_S < 5


def installed_by(
    monkeypatch: pytest.MonkeyPatch, directory: Path, *arguments: str, steps: list[str] | None = None
) -> list[str]:
    """Run the tool with pip replaced, and return the arguments of the installation, or none; record the other steps."""
    others = [] if steps is None else steps

    def run(_: list[str], waited_for: str) -> int:
        others.append(waited_for)
        return 0

    calls: list[tuple[str, ...]] = []
    monkeypatch.chdir(prepare_venv.ROOT)
    monkeypatch.setattr(sys, "argv", ["prepare_venv.py", str(directory), "--group", "dev", *arguments])
    monkeypatch.setattr(prepare_venv, "make", lambda _: Path("python"))
    monkeypatch.setattr(prepare_venv, "pip", lambda _, *given: calls.append(given))
    monkeypatch.setattr(prepare_venv, "run", run)
    monkeypatch.setattr(prepare_venv, "ensure_java", lambda _: others.append("Java"))
    prepare_venv.main()
    return [argument for call in calls if "--editable" in call for argument in call]


def test_versions_are_constrained_only_if_a_file_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "constraints.txt"
    file.write_text("pytest==8.4.2\n")
    assert "--constraint" not in installed_by(monkeypatch, tmp_path)
    assert installed_by(monkeypatch, tmp_path) == []
    assert installed_by(monkeypatch, tmp_path, "--constraints", str(file))[:2] == ["--constraint", str(file)]
    assert installed_by(monkeypatch, tmp_path, "--constraints", str(file)) == []
    file.write_text("pytest==9.0.1\n")
    assert installed_by(monkeypatch, tmp_path, "--constraints", str(file))[:2] == ["--constraint", str(file)]


def test_environment_without_spark_has_the_package_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    steps: list[str] = []
    for name in ("whole", "alone"):
        (tmp_path / name).mkdir()
    whole = installed_by(monkeypatch, tmp_path / "whole", steps=steps)
    assert whole[:2] == ["--editable", f".[{prepare_venv.EXTRAS}]"]
    assert prepare_venv.BUILDS_KERNELS[0] in whole
    assert steps == ["Building the kernels", "Java"]
    steps.clear()
    alone = installed_by(monkeypatch, tmp_path / "alone", "--without-spark", steps=steps)
    assert alone == ["--editable", ".", "--group", "dev"]
    assert steps == []


def requirements() -> list[Requirement]:
    """Return what `make test` installs, from pyproject.toml."""
    with (prepare_venv.ROOT / "pyproject.toml").open("rb") as file:
        project: dict[str, Any] = tomllib.load(file)
    extras = project["project"]["optional-dependencies"]
    named = [text for extra in prepare_venv.EXTRAS.split(",") for text in extras[extra]]
    groups = project["dependency-groups"]
    return [
        Requirement(text) for text in (*project["project"]["dependencies"], *named, *groups["test"], *groups["lint"])
    ]


def test_each_python_of_the_test_workflow_has_versions_within_the_bounds() -> None:
    pythons = yaml.safe_load(WORKFLOW.read_text())["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert {f"{python}.txt" for python in pythons} == {path.name for path in CONSTRAINTS.iterdir()}
    faults = []
    for python in pythons:
        lines = (CONSTRAINTS / f"{python}.txt").read_text().splitlines()
        assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.!+]+", line)] == []
        pins = {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}
        machine = {"python_version": python, "python_full_version": f"{python}.0", "platform_machine": "x86_64"}
        faults += [
            f"{python}: {wanted} against {pins.get(canonicalize_name(wanted.name))}"
            for wanted in requirements()
            if wanted.marker is None or wanted.marker.evaluate(machine)
            if not wanted.specifier.contains(pins.get(canonicalize_name(wanted.name), "0"))
        ]
    assert not faults, "\n".join(faults)
