"""Get the jars of the brokers that tests start, so that no test waits for a download. Quick when they are here."""

from __future__ import annotations

import sys

from pyspark_kafka.errors import SetupError
from pyspark_kafka.testing.jars import DEFAULT_VERSION, kafka_classpath

# The second is the last line before 4.0: tests/integration/_client/client/test_broker_versions.py runs against both.
VERSIONS = (DEFAULT_VERSION, "3.9.2")

try:
    for version in VERSIONS:
        kafka_classpath(version, progress=print)
except SetupError as error:
    sys.exit(str(error))
