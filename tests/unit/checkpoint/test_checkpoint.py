"""The public names of `pyspark_kafka.checkpoint`, and where programs import them from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pyspark_kafka.checkpoint

_REPO = Path(__file__).parents[3]
_IMPORT = re.compile(r"^(?:from|import) (pyspark_kafka[\w.]*)(?: import (.*))?$", re.MULTILINE)


@pytest.mark.parametrize("name", pyspark_kafka.checkpoint.__all__)
def test_public_name_can_be_imported(name: str) -> None:
    assert getattr(pyspark_kafka.checkpoint, name).__name__ == name
    assert f"`{name}`" in (pyspark_kafka.checkpoint.__doc__ or "")


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"'pyspark_kafka\.checkpoint' has no attribute 'unknown'"):
        _ = pyspark_kafka.checkpoint.unknown


@pytest.mark.parametrize("path", ["docs/checkpoints.md", "examples/replay_batch.py"])
def test_programs_for_users_import_public_names_only(path: str) -> None:
    public = {"pyspark_kafka", "pyspark_kafka.errors", "pyspark_kafka.checkpoint"}
    found = _IMPORT.findall((_REPO / path).read_text())
    assert {module for module, _ in found} <= public
    names = {name for module, names in found if module == "pyspark_kafka.checkpoint" for name in names.split(", ")}
    assert names
    assert names <= set(pyspark_kafka.checkpoint.__all__)
