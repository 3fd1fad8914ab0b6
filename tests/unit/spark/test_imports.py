"""What is imported when: Spark starts a Python process for each step of a query."""

from __future__ import annotations

import subprocess
import sys

_MADE = """
import sys
from pyspark_kafka import DefaultSource

source = DefaultSource({"kafka.bootstrap.servers": "b:9092", "subscribe": "t"})
source.schema()
print(*sorted(name for name in sys.modules if name == "kafka" or name.startswith("pyspark_kafka.client")))
"""


def test_a_source_is_made_and_tells_its_schema_without_what_talks_to_brokers() -> None:
    done = subprocess.run([sys.executable, "-c", _MADE], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == []


_READ = """
import sys
import pyspark_kafka.sink.exactly_once, pyspark_kafka.source.micro_batch
print("pyarrow.fs" in sys.modules)
"""


def test_file_systems_of_clouds_are_not_imported_for_a_local_checkpoint() -> None:
    done = subprocess.run([sys.executable, "-c", _READ], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["False"]
