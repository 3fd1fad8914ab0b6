"""State by key of a continuous query: what a task keeps between rows, and how it survives the task.

`by_key` is what functions hold, `lane_state` has the values of a lane in a local store, `version_files` keeps them in
the checkpoint, `versions` names them, `row_codec` turns rows into bytes,
`plan` is what the driver tells tasks.

Invariant: a version of the state is written before its epoch is reported, and never changed afterwards; a run opens the
versions of the last committed epoch only. Knows no Spark and no Kafka.
"""
