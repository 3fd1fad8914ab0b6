"""docs/platforms.md: its table has the versions of deploy/platforms, which a test imitates the platforms with."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = {path.stem: path.read_text() for path in sorted((ROOT / "deploy" / "platforms").glob("*.txt"))}
PAGE = (ROOT / "docs" / "platforms.md").read_text()
# How the row of each file begins.
ROWS = {
    "databricks-serverless-5": "| [Databricks, serverless]",
    "dataproc-3.0": "| [Dataproc](#dataproc), serverless",
    "emr-spark-8.1": "| [EMR on EC2]",
    "fabric-2.0": "| [Fabric]",
    "glue-6.0": "| [Glue]",
}


def test_table_has_the_versions_of_each_constraints_file() -> None:
    assert ROWS.keys() == FILES.keys()
    for name, begin in ROWS.items():
        (row,) = (line for line in PAGE.splitlines() if line.startswith(begin))
        _, _, _, pythons, spark, *packages, _, _ = (cell.strip() for cell in row.split("|"))
        pins = dict(re.findall(r"^([\w-]+)==([\w.]+?)(?:\.\*)?$", FILES[name], re.MULTILINE))
        assert [pins.get(package, "not found") for package in ("pyarrow", "pandas", "numpy")] == packages, name
        assert (pins.get("pyspark") or f"Databricks Connect {pins['databricks-connect']}") in spark, name
        heading = FILES[name].partition("\n")[0].partition(": Python ")[2]
        assert heading, name
        assert pythons in {heading, "not found"}, name


def test_page_links_each_constraints_file() -> None:
    assert set(re.findall(r"\(\.\./deploy/platforms/([\w.-]+)\.txt\)", PAGE)) == FILES.keys()
