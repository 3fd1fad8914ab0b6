"""No text of a checkpoint reaches a terminal as a control character, by any command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.checkpoint_files import write_checkpoint
from kit.programs.cli import invoke

# Writes the clipboard, clears the screen, sets the title, moves back, begins a line; of both control sets.
HOSTILE = "\x1b]52;c;aGk=\x07\x1b[2J\x9b31m\x1b]0;t\x1b\\\b\r\x7f\u202e"
OTHER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def hostile_checkpoint(location: Path) -> None:
    """Write a checkpoint of which every text that may be any has control characters."""
    name = HOSTILE
    ends = [{f"t{name}": {"0": number, "1": 5}, "u": {"0": 7}} for number in (3, 9)]
    write_checkpoint(location, ends, version=2, finished=1)
    (location / "metadata").write_text(json.dumps({"id": f"query {name}"}))
    ids = {"topics": {f"t{name}": f"{OTHER_ID}{name}"}, "restart": None}
    (location / "sources" / "0" / "topic-ids").write_text(f"v1\n{json.dumps(ids)}\n")
    for directory in (f"state/{name}", f"state/0/{name}", f"{name}", "state/0/0"):
        (location / directory).mkdir(parents=True, exist_ok=True)
    for file in (f"file {name}", f"offsets/{name}", f"commits/{name}", f"state/0/0/{name}.delta", f".{name}.crc"):
        (location / file).write_text(name)


def damaged_checkpoint(location: Path) -> None:
    """Write a checkpoint that has its control characters where other text is expected."""
    hostile_checkpoint(location)
    offsets = location / "offsets" / "0"
    offsets.write_text(f"v2\n{json.dumps({'conf': {HOSTILE: HOSTILE}})}\n{HOSTILE}:{HOSTILE}")
    (location / "commits" / "0").write_text(HOSTILE)
    (location / "sources" / "0" / "topic-ids").write_text(HOSTILE)


@pytest.mark.parametrize("make", [hostile_checkpoint, damaged_checkpoint])
@pytest.mark.parametrize(
    "command",
    [
        ("checkpoint", "show", "A"),
        ("checkpoint", "show", "A", "--all"),
        ("checkpoint", "explain", "A"),
        ("checkpoint", "verify", "A"),
        ("checkpoint", "diff", "A", "B"),
        ("checkpoint", "diff", "B", "A", "--all"),
        ("checkpoint", "fork", "A", "C", "--batch", "0", "--drop-state"),
        ("checkpoint", "fork", "A", "C", "--offsets", json.dumps({f"t{HOSTILE}": {"0": 1}}), "--drop-state"),
        ("checkpoint", "rewind", "A", "--batch", "0", "--drop-state"),
        ("checkpoint", "show", "A", "--json"),
        ("checkpoint", "verify", "A", "--json"),
        ("report", "A", "--html", "PAGE"),
        ("lag", "--checkpoint", "A", "--bootstrap-servers", "localhost:1", "--timeout", "1"),
    ],
    ids=lambda each: ascii(" ".join(each)).replace("\\", "") if isinstance(each, tuple) else None,
)
def test_no_control_character_is_printed(
    tmp_path: Path, command: tuple[str, ...], make: Callable[[Path], None]
) -> None:
    places = {"A": str(tmp_path / f"a{HOSTILE}"), "B": str(tmp_path / "b"), "C": str(tmp_path / f"c{HOSTILE}")}
    places["PAGE"] = str(tmp_path / f"page{HOSTILE}.html")
    make(tmp_path / f"a{HOSTILE}")
    write_checkpoint(tmp_path / "b", [{f"t{HOSTILE}": {"0": 4}, "u": {"0": 5}}])
    ids = {"topics": {f"t{HOSTILE}": "BAAAAAAAAAAAAAAAAAAAAQ"}, "restart": None}
    (tmp_path / "b" / "sources" / "0" / "topic-ids").write_text(f"v1\n{json.dumps(ids)}\n")
    result = invoke(*(places.get(each, each) for each in command))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    for printed in (result.stdout, result.stderr):
        assert {each for each in printed if not each.isprintable()} <= {"\n"}, printed
    assert result.stdout or result.stderr
