"""All programs of docs/how-it-works.md, run in order, print what the page shows."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from kit.pointers import REPO, programs_with_output


@pytest.mark.usefixtures("spark")
def test_programs_print_the_output_of_the_page(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(REPO)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    # As in a program of its own: Spark pickles its class by value.
    names: dict[str, Any] = {"__name__": "__main__"}
    for program, printed in programs_with_output("how-it-works.md"):
        exec(program, names)  # noqa: S102 - our own page
        assert capsys.readouterr().out == printed
