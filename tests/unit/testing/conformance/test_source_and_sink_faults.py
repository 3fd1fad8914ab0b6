"""The contract suites: a source and a sink that keep them pass, and each planted fault fails the case for it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from kit import contracts

if TYPE_CHECKING:
    from pathlib import Path


FAULTS = {**contracts.SOURCE_FAULTS, **contracts.SINK_FAULTS}


def class_of(fault: str) -> str:
    return "Test" + "".join(word.title() for word in fault.split())


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """What became of each case, by class: "" if it passed, else the text of the failure."""
    report: Path = tmp_path_factory.mktemp("report") / "report.xml"
    cases = [f"::{class_of(fault)}::{case}" for fault, case in FAULTS.items()]
    nodes = [f"{contracts.__file__}{each}" for each in ("::TestLines", "::TestFiles", *cases)]
    settings = ["-q", "-p", "no:randomly", "-p", "no:cacheprovider", f"--junitxml={report}"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *nodes, *settings], capture_output=True, text=True, check=False
    )
    assert run.returncode in (0, 1), run.stdout + run.stderr
    found: dict[str, dict[str, str]] = {}
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - our own file
        name = case.get("name", "").partition("[")[0]
        failed = case.find("failure") if case.find("failure") is not None else case.find("error")
        texts = found.setdefault(case.get("classname", "").rpartition(".")[2], {})
        texts[name] = texts.get(name) or ("" if failed is None else failed.text or "")
    return found


@pytest.mark.parametrize("name", ["TestLines", "TestFiles"])
def test_connector_that_keeps_its_contract_passes(outcomes: dict[str, dict[str, str]], name: str) -> None:
    assert len(outcomes[name]) >= 10
    assert {case: text for case, text in outcomes[name].items() if text} == {}


@pytest.mark.parametrize(("fault", "case"), FAULTS.items())
def test_planted_fault_fails_its_case(outcomes: dict[str, dict[str, str]], fault: str, case: str) -> None:
    assert outcomes[class_of(fault)][case], f"{case} passed, although the connector {fault}"
