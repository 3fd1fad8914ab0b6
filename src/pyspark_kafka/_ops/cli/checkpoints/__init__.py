"""`pyspark-kafka checkpoint`: `app` has the arguments of its commands, `fork_commands` of `fork` and `rewind`.

`show` does the work of `show` and `explain`, `verify`, `diff` and `fork` of the other commands.

Invariant: nothing is computed here; `pyspark_kafka._ops.operations` does so.
"""
