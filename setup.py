"""Builds the compiled variants of the hot loops; the rest of the build is in pyproject.toml.

The extensions are optional: without a C compiler, or with one that fails, the installation still succeeds and the
codecs run as Python. `pyspark_kafka.records.codec_info()` then says so and how to get the fast variant.
"""

from __future__ import annotations

import os
import sys

from setuptools import Extension, setup

KERNELS = (
    "pyspark_kafka/records/_kernel_read",
    "pyspark_kafka/records/_kernel_write",
    "pyspark_kafka/_typed/codecs/avro/_kernel_read",
    "pyspark_kafka/_typed/codecs/avro/_kernel_write",
    "pyspark_kafka/_typed/codecs/protobuf/_kernel_outline",
)


def extensions() -> list[Extension]:
    """Return the kernels as an optional extension; none if it is not wanted or Cython cannot translate it."""
    if os.environ.get("PYSPARK_KAFKA_PURE_PYTHON") == "1":
        return []
    try:
        from Cython.Build import cythonize  # noqa: PLC0415 - may be missing
    except ImportError:
        sys.stderr.write("pyspark-kafka: Cython is missing, the codecs are installed uncompiled (slow)\n")
        return []
    flags = [] if sys.platform == "win32" else ["-O3", "-g0"]
    kernel = [Extension(path.replace("/", "."), [f"src/{path}.py"], extra_compile_args=flags) for path in KERNELS]
    built: list[Extension] = cythonize(kernel, language_level=3, build_dir="build")
    for extension in built:
        # Here, since cythonize gives new objects without it: a failing compiler must not fail the installation.
        extension.optional = True
    return built


# Side by side: the largest kernel takes as long as all others together.
setup(ext_modules=extensions(), options={"build_ext": {"parallel": os.cpu_count() or 1}})
