"""Keeps PySpark's collection of garbage between tasks short."""

from __future__ import annotations

import gc

from pyspark_kafka._connector.spark.processes.running_module import module_of_spark

# PySpark's daemon runs its workers, and the workers that build and commit stream writers.
_DAEMON = "pyspark.daemon"

_calls = 0


def freeze_gc() -> None:
    """Exclude what is alive now from future garbage collections, in a reused process of PySpark.

    PySpark's daemon calls `gc.collect()` after every task, in the worker, before it can begin its next one. It walks
    through everything that was imported (pyarrow, pandas, numpy, kafka-python): tens of milliseconds of CPU, twice a
    task of a query from Kafka to Kafka, more than the task itself takes. Objects that are frozen are left out of it,
    and are still freed when their last reference goes.

    Call it when a task begins. It acts at the second, fourth, eighth … call: the first task imports, and a
    collection has just been run. What is part of a cycle and alive at one of these moments is never freed, which is
    why there are few of them. Does nothing in a process that is not PySpark's daemon's.

    Runs on: executor, and driver where PySpark builds stream writers.
    """
    global _calls  # noqa: PLW0603 - a count of this process
    if module_of_spark() != _DAEMON:
        return
    _calls += 1
    if _calls > 1 and _calls & (_calls - 1) == 0:
        gc.freeze()
