"""Get the jars of the embedded broker, so that no test waits for a download. Quick when they are here."""

from __future__ import annotations

import sys

from pyspark_kafka.errors import SetupError
from pyspark_kafka.testing.jars import kafka_classpath

try:
    kafka_classpath(progress=print)
except SetupError as error:
    sys.exit(str(error))
