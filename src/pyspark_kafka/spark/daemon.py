"""For `spark.python.daemon.module`: PySpark's daemon for tasks, with the installed PySpark. Layer: spark.

See `worker_python` for what it does. Spark takes the setting for the processes of tasks only; by it, executors need no
path of a program to be told.
"""

from __future__ import annotations

import sys

from pyspark_kafka.spark.worker_python import run

if __name__ == "__main__":
    run("pyspark.daemon", sys.argv[1:])
