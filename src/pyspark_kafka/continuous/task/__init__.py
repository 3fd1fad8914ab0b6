"""The code in a Spark task of a continuous query.

`lane` takes one input partition from reader to writer, `stages` are the functions of the query, `run_task` holds both.
`deferred_reports` leave when their state is written, `meter` measures how long rows take.

Invariant: a failure reaches the driver as a message, with its traceback; the task itself ends as if it had succeeded,
so Spark does not repeat it. Knows no Spark.
"""
