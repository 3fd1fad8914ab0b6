"""Record the outcome of a long run, and take such records into the repository.

usage: results.py

A run writes a JSON file into build/results (`Run`). This program takes those files into docs/results, in place of the
former ones, and writes their texts into the pages that have the marks: `make results`.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

from pyspark_kafka.testing.jars import DEFAULT_VERSION
from pyspark_kafka.version import __version__

ROOT = Path(__file__).resolve().parent.parent
WRITTEN, TAKEN = ROOT / "build" / "results", ROOT / "docs" / "results"
# A part of a page, between the mark of a run and the end.
_PART = re.compile(r"(?<=<!-- result: )([\w-]+)( -->\n)(.*?)(?=\n<!-- end of the result -->)", re.DOTALL)
# What a run depends on.
_CODE = ("src", "tests", "bench", "fuzz", "tools")


class Run:
    """A run that begins now: the commit and the time of its record are those of the begin.

    Args:
        name: of the run and of its file.
        broker: the version of the brokers, if it has some.
    """

    def __init__(self, name: str, broker: str | None = DEFAULT_VERSION) -> None:
        self._name = name
        self._facts: dict[str, Any] = {
            "run": name,
            "command": command(),
            "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "commit": git("rev-parse", "HEAD"),
            "changed": bool(git("status", "--porcelain", "--", *_CODE)),
            "version": __version__,
            "python": platform.python_version(),
            "spark": _installed("pyspark"),
            "broker": broker,
        }

    def end(self, *, passed: bool, counts: Mapping[str, float], text: str = "", **facts: object) -> None:
        """Write the record, in place of an earlier one.

        Args:
            passed: whether all was as it should be.
            counts: what was counted, also zeros.
            text: for the page that has the mark of this run, in Markdown.
            facts: what else is known, such as the seed.
        """
        WRITTEN.mkdir(parents=True, exist_ok=True)
        record = {**self._facts, **facts, "passed": passed, "counts": dict(counts), "text": text}
        (WRITTEN / f"{self._name}.json").write_text(json.dumps(record, indent=2) + "\n")


def command() -> str:
    """Return the command of this process as a user types it, without the folders of this machine."""
    words = shlex.split(os.environ.get("MADE_BY", "")) or ["python", *sys.orig_argv[1:]]
    return " ".join(_typed(word) for word in words)


def _typed(word: str) -> str:
    """Return a word of a command with the last name of each absolute path, in quotation marks where it needs them."""
    variable, is_set, value = word.partition("=") if re.match(r"[A-Z_]+=", word) else ("", "", word)
    value = re.sub(r"(?<!\S)/\S*?([^/\s]+)/?(?!\S)", r"\1", value)
    return f"{variable}{is_set}" + (f'"{value}"' if re.search(r"[\s*;&|<>()$'\"]", value) else value)


def git(*arguments: str) -> str:
    """Return the output of a git command; empty without git or a repository."""
    try:
        answer = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""


def _installed(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def read_results(folder: Path = TAKEN) -> dict[str, dict[str, Any]]:
    """Return the records in a folder by the names of their runs."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def conditions(result: Mapping[str, Any]) -> str:
    """Return when a run was, of which commit, and with which versions."""
    versions = (("Kafka", "broker"), ("PySpark", "spark"), ("Python", "python"))
    used = [f"{name} {result[key]}" for name, key in versions if result[key]]
    return ", ".join([result["date"][:10], f"commit {commit_of(result)}", *used])


def commit_of(result: Mapping[str, Any]) -> str:
    """Return the short name of the commit of a run."""
    changed = " with changes" if result["changed"] else ""
    return f"`{result['commit'][:10]}`{changed}" if result["commit"] else "unknown"


def with_texts(page: str, results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a page with the texts of the runs whose marks it has; a part without a record stays as it is."""

    def part(found: re.Match[str]) -> str:
        name, end_of_mark, text = found.groups()
        if name in results:
            result = results[name]
            text = f"`{result['command']}`, {conditions(result)}:\n\n{result['text']}"
        return f"{name}{end_of_mark}{text}"

    return _PART.sub(part, page)


def pages_with_parts() -> Iterator[tuple[Path, str]]:
    """Yield each page that has the mark of a run, with its text."""
    for path in sorted((ROOT / "docs").rglob("*.md")):
        if _PART.search(text := path.read_text()):
            yield path, text


def main() -> None:
    """Take what was written, and write the texts into the pages."""
    written = sorted(WRITTEN.glob("*.json"))
    if not written:
        sys.exit(f"There are no results in {WRITTEN.relative_to(ROOT)}: run make test-all, test-chaos or another run")
    TAKEN.mkdir(exist_ok=True)
    for path in written:
        shutil.move(path, TAKEN / path.name)
        print(f"docs/results/{path.name}")
    for path, page in pages_with_parts():
        path.write_text(with_texts(page, read_results()))


if __name__ == "__main__":
    main()
