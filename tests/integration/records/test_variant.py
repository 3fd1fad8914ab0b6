"""The variant of the kernel that a process has, by its environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark_kafka


def test_the_environment_can_force_the_slow_variant() -> None:
    program = "from pyspark_kafka.records import codec_info as c; print(c().compiled, c().hint)"
    environment = {
        **os.environ,
        "PYSPARK_KAFKA_PURE_PYTHON": "1",
        "PYTHONPATH": str(Path(pyspark_kafka.__file__).parent.parent),
    }
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("False The slow pure-Python codec was asked for. Unset PYSPARK_KAFKA_PURE_PYTHON")
