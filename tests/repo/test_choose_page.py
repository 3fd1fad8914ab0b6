"""docs/choose.md: every fact about real-time mode has its source and date, and the installed Spark agrees on Python."""

from __future__ import annotations

import re
from pathlib import Path
from zipfile import ZipFile

import pyspark

from kit.pointers import REPO

PAGE = (REPO / "docs" / "choose.md").read_text()
_OPERATORS = "RealTimeModeAllowlist$.class"


def test_each_row_about_real_time_mode_has_an_address_and_a_date() -> None:
    rows = re.findall(r"^\| .*\|$", PAGE.partition("## Why not real-time mode")[2], re.MULTILINE)[2:]
    assert len(rows) >= 5
    for row in rows:
        assert re.search(r"\[[\w ]+, 20\d\d-\d\d-\d\d\]\[\w+\] \|$", row), row


def test_each_source_is_used_and_has_an_address() -> None:
    addresses = dict(re.findall(r"^\[(\w+)\]: (https://\S+)$", PAGE, re.MULTILINE))
    assert addresses.keys() == set(re.findall(r"\]\[(\w+)\]", PAGE))


def test_no_operator_of_real_time_mode_runs_python() -> None:
    """Where a later Spark has one, the page must say so. Spark 4.0 has no such mode."""
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("spark-sql_2.13-*.jar")
    with ZipFile(jar) as classes:
        found = [classes.read(name) for name in classes.namelist() if name.endswith(_OPERATORS)]
    assert len(found) == (0 if pyspark.__version__.startswith("4.0.") else 1)
    for operators in found:
        assert b"sql.execution.ProjectExec" in operators
        assert b"sql.execution.python" not in operators
        assert b"sql/execution/python" not in operators


def test_page_is_read_in_minutes() -> None:
    text = re.sub(r"^\[\w+\]: .*\n", "", PAGE, flags=re.MULTILINE)
    assert len(text.encode()) <= 8_000
