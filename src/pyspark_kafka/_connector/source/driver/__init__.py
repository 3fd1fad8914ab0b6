"""The driver side of the source: where reads start and end, and which task reads what. Never touches records.

Entry points: `micro_batch.KafkaMicroBatchStream`, `batch.KafkaBatch`, `continuous.KafkaContinuousStream`.

- `starting_position`, `edge_resolver`: where a read starts and ends; `admission`: where a micro-batch ends.
- `topic_losses`, `topic_watch`: deleted and recreated topics.
- `offset_reader`, `assignment`: the look-ups; `tasks`: ranges to tasks.

Invariant: a plan is a function of start, end and options, so that a repeated batch reads the same records.
"""
