"""Builds the compiled variant of the record codec; everything else of the build is declared in pyproject.toml.

The extension is optional: without a C compiler, or with one that fails, the installation still succeeds and the codec
runs as Python. `pyspark_kafka.records.codec_info()` then says so and how to get the fast variant.
"""

from __future__ import annotations

import os
import sys

from setuptools import Extension, setup

KERNEL = ("_kernel_read", "_kernel_write")


def extensions() -> list[Extension]:
    """Give the kernel as an optional extension; none if it is not wanted or Cython cannot translate it."""
    if os.environ.get("PYSPARK_KAFKA_PURE_PYTHON") == "1":
        return []
    try:
        from Cython.Build import cythonize  # noqa: PLC0415 - may be missing
    except ImportError:
        sys.stderr.write("pyspark-kafka: Cython is missing, the record codec is installed uncompiled (slow)\n")
        return []
    flags = [] if sys.platform == "win32" else ["-O3"]
    kernel = [
        Extension(
            f"pyspark_kafka.records.{name}",
            [f"src/pyspark_kafka/records/{name}.py"],
            extra_compile_args=flags,
            optional=True,
        )
        for name in KERNEL
    ]
    built: list[Extension] = cythonize(kernel, language_level=3, build_dir="build")
    return built


setup(ext_modules=extensions())
