"""The outcomes of the cases of a file, run by pytest in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree as ET


def class_of(fault: str) -> str:
    """Return the name of the test class with a planted fault."""
    return "Test" + "".join(word.title() for word in fault.split())


def outcomes_of(file: str | None, nodes: Iterable[str], directory: Path) -> dict[str, dict[str, str]]:
    """Return what became of each case, by class: "" if it passed, else the text of the failure.

    Args:
        file: the file of the cases.
        nodes: `Class` or `Class::case`.
        directory: for the report.
    """
    report = directory / "report.xml"
    settings = ["-q", "-p", "no:randomly", "-p", "no:cacheprovider", f"--junitxml={report}"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *(f"{file}::{node}" for node in nodes), *settings],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode in (0, 1), run.stdout + run.stderr
    found: dict[str, dict[str, str]] = {}
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - our own file
        name = case.get("name", "").partition("[")[0]
        failed = case.find("failure") if case.find("failure") is not None else case.find("error")
        texts = found.setdefault(case.get("classname", "").rpartition(".")[2], {})
        texts[name] = texts.get(name) or ("" if failed is None else failed.text or "")
    return found
