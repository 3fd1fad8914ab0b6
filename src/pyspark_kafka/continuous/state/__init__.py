"""State by key of a continuous query: what a task keeps between rows, and how it survives the task.

`by_key` is what functions hold, `lane_state` has the values of a lane in a local store, `slot` follows the versions of
one state, `version_files` writes them to the checkpoint, `versions` names them, `row_codec` turns rows into bytes.

Invariant: a version of the state is written before its epoch is reported, or its name committed with a position, and
never changed afterwards; a run opens the versions of the last committed epoch, or the versions that positions name.
Knows no Spark and no Kafka.
"""
