"""Kernels as Python, and compiled, where Cython is not installed."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from pyspark_kafka._base import compiled

KERNELS = [
    ("pyspark_kafka.records", "_kernel_read"),
    ("pyspark_kafka.records", "_kernel_write"),
    ("pyspark_kafka._typed.codecs.avro", "_kernel_read"),
    ("pyspark_kafka._typed.codecs.avro", "_kernel_write"),
    ("pyspark_kafka._typed.codecs.protobuf", "_kernel_outline"),
]


@pytest.mark.parametrize(("package", "name"), KERNELS)
def test_source_of_a_kernel_needs_no_cython(package: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cython", None)
    monkeypatch.delitem(sys.modules, f"{package}.{name}_uncompiled", raising=False)
    loaded = compiled.load_source(package, name)
    assert loaded.__file__.endswith(f"{name}.py")
    assert loaded.cython.compiled is False
    with pytest.raises(ModuleNotFoundError):
        import cython  # noqa: F401, PLC0415 - the stand-in is for kernels alone


def test_stand_in_has_the_names_that_kernels_use() -> None:
    used: set[str] = set()
    for package, name in KERNELS:
        loaded = compiled.load_source(package, name)
        tree = ast.parse(Path(loaded.__file__).read_text())
        for node in ast.walk(tree):
            # Annotations are never looked up.
            for field in ("annotation", "returns"):
                if getattr(node, field, None) is not None:
                    setattr(node, field, None)
        used |= {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "cython"
        }
    # Only where `cython.compiled` is true.
    assert used - {"address"} == vars(loaded.cython).keys()


def test_stand_in_leaves_what_it_decorates_and_casts_as_it_is() -> None:
    kernel = compiled.load_source("pyspark_kafka.records", "_kernel_write")
    given = object()
    assert kernel.cython.cast(kernel.cython.int, given) is given
    assert kernel.cython.exceptval(-1)(given) is given
    assert kernel.cython.nogil(given) is given
    with kernel.cython.nogil:
        assert kernel.cython.declare(kernel.cython.uint, 7) == 7
