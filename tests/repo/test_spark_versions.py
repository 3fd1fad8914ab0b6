"""The table of what PySpark versions lack: its tests exist, its rows are in docs/install.md, CI runs its versions."""

from __future__ import annotations

import ast
import re

import yaml

from kit.fixtures.spark_versions import LACKS, lacking
from kit.pointers import REPO


def test_each_test_of_the_table_exists_and_is_there_once_for_a_version() -> None:
    for row in LACKS:
        for test in row.tests:
            path, _, name = test.partition("::")
            tree = ast.parse((REPO / path).read_text())
            functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
            assert not name or name.partition("[")[0] in functions, test
    for version in {version for row in LACKS for version in row.versions}:
        named = [test for row in LACKS if version in row.versions for test in row.tests]
        assert sorted(lacking(f"{version}.1")) == sorted(named)


def test_version_without_a_row_lacks_nothing() -> None:
    assert lacking("4.2.0") == {}


def test_lacks_of_each_version_are_in_the_docs() -> None:
    rows = re.findall(r"^\| ([\d., ]+) \| (.+?) \|", (REPO / "docs" / "install.md").read_text(), re.MULTILINE)
    assert {(", ".join(sorted(row.versions)), row.lack) for row in LACKS} == set(rows)


def test_changes_of_the_adapters_run_with_each_version_of_the_table_and_all_run_at_night() -> None:
    folder = REPO / ".github" / "workflows"
    versions = {version for row in LACKS for version in row.versions}
    adapters = yaml.safe_load((folder / "spark.yml").read_text())
    assert set(adapters["jobs"]["test"]["strategy"]["matrix"]["spark"]) == versions
    # YAML 1.1 reads `on` as true.
    assert all(
        "src/pyspark_kafka/_connector/spark/**" in adapters[True][event]["paths"] for event in ("push", "pull_request")
    )
    nightly = yaml.safe_load((folder / "test.yml").read_text())["jobs"]["nightly"]["strategy"]["matrix"]["target"]
    assert {f"test-spark SPARK={version}" for version in versions} <= set(nightly)
