"""Which variant of the kernel runs, and how the user learns of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark_kafka
from pyspark_kafka.records import codec_info


def test_codec_info_names_the_variant_in_use(codec_variant: str) -> None:
    info = codec_info()
    assert info.compiled is (codec_variant == "compiled")
    assert info.path.endswith(".py") is not info.compiled
    assert bool(info.hint) is not info.compiled


def test_the_environment_can_force_the_slow_variant() -> None:
    program = "from pyspark_kafka.records import codec_info as c; print(c().compiled, c().hint)"
    environment = {
        **os.environ,
        "PYSPARK_KAFKA_PURE_PYTHON": "1",
        "PYTHONPATH": str(Path(pyspark_kafka.__file__).parent.parent),
    }
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("False The slow pure-Python codec was asked for. Unset PYSPARK_KAFKA_PURE_PYTHON")
