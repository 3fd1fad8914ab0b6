"""The active variant of the Protobuf kernel: the compiled extension, or the same source as Python.

`outline` is the one in use; it is looked up at call time, so that tests can run both variants in one process.
"""

from __future__ import annotations

from pyspark_kafka._base import compiled

_PACKAGE = "pyspark_kafka._typed.codecs.protobuf"

outline = compiled.load_module(_PACKAGE, "_kernel_outline")
