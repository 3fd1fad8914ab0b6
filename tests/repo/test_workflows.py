"""The workflows: actions pinned by hash, least rights, and nothing that a person cannot run with `make`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text()
PINNED = re.compile(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
MAY_WRITE = {
    ("release.yml", "publish", "id-token"),
    ("release.yml", "publish", "attestations"),
    ("site.yml", "publish", "id-token"),
    ("site.yml", "publish", "pages"),
}


def jobs() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (workflow, job, its definition)."""
    for path in WORKFLOWS:
        for name, job in yaml.safe_load(path.read_text())["jobs"].items():
            yield path.name, name, job


def test_each_action_is_pinned_by_the_hash_of_a_named_release() -> None:
    uses = [
        line.strip().removeprefix("- ")
        for path in WORKFLOWS
        for line in path.read_text().splitlines()
        if "uses:" in line
    ]
    assert uses
    assert [line for line in uses if not PINNED.fullmatch(line)] == []


def test_no_job_has_rights_but_those_of_publishing() -> None:
    for path in WORKFLOWS:
        assert yaml.safe_load(path.read_text())["permissions"] in ({}, {"contents": "read"}), path.name
    granted = {
        (workflow, name, right)
        for workflow, name, job in jobs()
        for right, level in job.get("permissions", {}).items()
        if level == "write"
    }
    assert granted == MAY_WRITE


def test_checkouts_keep_no_credentials() -> None:
    steps = [step for _, _, job in jobs() for step in job["steps"] if "checkout@" in step.get("uses", "")]
    assert steps
    assert all(step["with"]["persist-credentials"] is False for step in steps)


def test_each_command_is_a_target_of_the_makefile() -> None:
    targets = set(re.findall(r"^([\w-]+):", MAKEFILE, re.MULTILINE))
    commands = [step["run"] for _, _, job in jobs() for step in job["steps"] if "run" in step]
    for _, _, job in jobs():
        matrix = job.get("strategy", {}).get("matrix", {}).get("target", [])
        commands += [f"make {target}" for target in matrix]
    called = [command.split()[:2] for command in commands if "${{ matrix." not in command]
    assert called
    # Windows has no make: a step there runs the tool of a target.
    tools = set(re.findall(r"^\t@.* (tools/\w+\.py)$", MAKEFILE, re.MULTILINE))
    allowed = {("make", target) for target in targets} | {("python", tool) for tool in tools}
    assert [command for command in called if tuple(command) not in allowed] == []


def test_navigation_of_the_site_names_each_page_of_docs_once() -> None:
    text = (ROOT / "zensical.toml").read_text()
    named = re.findall(r'= "([\w/.-]+\.md)"', text)
    folders = re.findall(r'= "(\w+)/"', text)
    pages = sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md"))
    assert sorted(set(named)) == sorted(named)
    assert [page for page in pages if page not in named and page.partition("/")[0] not in folders] == []


def test_no_command_takes_a_value_of_an_event_into_its_text() -> None:
    taken = [step["run"] for _, _, job in jobs() for step in job["steps"] if "${{ github." in step.get("run", "")]
    assert taken == []
