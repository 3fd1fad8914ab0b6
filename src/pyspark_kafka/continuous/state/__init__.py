"""State by key of a continuous query: what a task keeps between rows, and how it survives the task.

- `by_key` is what functions hold; `lane_state` has the values of a lane in a local store (`local_directory`), as bytes
  of `row_codec`.
- `history` decides when all of one state is written and which files stay; `version_files` writes them to the
  checkpoint, and deletes old ones once `lane_state` has written all of a state; `versions` names them.
- `step_time` has the timers and the watermark of one step, and takes timers that are due; `timers` has their order,
  `times` their numbers.

Invariant: a version of the state is written before its epoch is reported, or its name committed with a position, and
never changed afterwards; a run opens the versions of the last committed epoch, or the versions that positions name.
Knows no Spark and no Kafka.
"""
