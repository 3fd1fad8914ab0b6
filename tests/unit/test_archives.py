"""The package on Python's path as an archive, where nothing is compiled and no file lies beside another."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from pyspark_kafka._base import compiled


def test_kernel_in_an_archive_is_loaded_as_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "shipped.zip", "w") as file:
        file.writestr("shipped_kernel/__init__.py", "")
        file.writestr("shipped_kernel/_kernel_read.py", "import cython\nNAME = 'read'\n")
        file.writestr("shipped_kernel/_kernel_write.py", "NAME = 'write'\n")
    monkeypatch.syspath_prepend(str(tmp_path / "shipped.zip"))
    monkeypatch.setitem(sys.modules, "cython", None)
    try:
        kernel = compiled.load_kernel("shipped_kernel")
        assert (kernel.reading.NAME, kernel.writing.NAME, kernel.compiled) == ("read", "write", False)
    finally:
        for name in [each for each in sys.modules if each.startswith("shipped_kernel")]:
            del sys.modules[name]
