"""For `spark.python.daemon.module`: PySpark's daemon for tasks, with the PySpark that pip has installed.

See `worker_python` for what it does. Spark uses the setting for the processes of tasks only. It names a module, so
executors need no path of a program.
"""

from __future__ import annotations

import sys

from pyspark_kafka._connector.spark.worker_python import run

if __name__ == "__main__":
    run("pyspark.daemon", sys.argv[1:])
