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
    flags = [] if sys.platform == "win32" else ["-O3", "-g0"]
    kernel = [
        Extension(
            f"pyspark_kafka.records.{name}",
            [f"src/pyspark_kafka/records/{name}.py"],
            extra_compile_args=flags,
        )
        for name in KERNEL
    ]
    built: list[Extension] = cythonize(kernel, language_level=3, build_dir="build")
    for extension in built:
        # Here, since cythonize gives new objects without it: a failing compiler must not fail the installation.
        extension.optional = True
    return built


setup(ext_modules=extensions())
