"""The programs of docs/formats.md, run as they stand, with the output that the page shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.full("Programs of the pages")

_DOC = Path(__file__).parents[4] / "docs" / "formats.md"


def test_the_programs_print_what_the_page_shows(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    page = _DOC.read_text()
    programs = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    shown = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    assert len(programs) == len(shown) == 3
    names: dict[str, Any] = {"spark": spark}
    for program, expected in zip(programs, shown, strict=True):
        exec(program, names)  # noqa: S102 - our own text
        assert capsys.readouterr().out.strip() == expected.strip()
