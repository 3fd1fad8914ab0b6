"""What is imported when: Spark starts a Python process for each step of a query."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import sys
from pyspark_kafka import DefaultSource

source = DefaultSource({"kafka.bootstrap.servers": "b:9092", "subscribe": "t"})
source.schema()
print(*sorted(name for name in sys.modules if name == "kafka" or name.startswith("pyspark_kafka.client")))
"""


def test_a_source_is_made_and_tells_its_schema_without_what_talks_to_brokers() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == []
