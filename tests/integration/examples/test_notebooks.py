"""The notebooks of examples/notebooks, run as programs, cell by cell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kit.pointers import REPO
from kit.programs.run import run_program

pytestmark = pytest.mark.full("Programs of the pages")

_NOTEBOOKS = sorted((REPO / "examples" / "notebooks").glob("*.ipynb"))
_END = "end of the cell"


@pytest.mark.parametrize("notebook", _NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_notebook_prints_the_outputs_that_it_shows(notebook: Path, tmp_path: Path) -> None:
    cells = [each for each in json.loads(notebook.read_text())["cells"] if each["cell_type"] == "code"]
    assert {output["name"] for each in cells for output in each["outputs"]} == {"stdout"}
    shown = ["".join(line for output in each["outputs"] for line in output["text"]) for each in cells]
    program = "".join(f"{''.join(each['source'])}\nprint({_END!r})\n" for each in cells)

    printed = run_program(program, place=tmp_path).split(f"{_END}\n")[:-1]

    assert printed == shown
