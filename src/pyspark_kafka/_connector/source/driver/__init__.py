"""The driver side of the source: the starts and ends of reads, and their tasks. Never touches records.

- `micro_batch`, `batch`, `continuous`: the kinds of read; `stream`: the common base of the first and the last.
  `batch` also applies the filters of a read.
- `starting_position`, `edge_resolver`: where a read starts and ends; `admission`: where a micro-batch ends.
- `topic_losses`, `topic_watch`: deleted and recreated topics, the beginnings of new partitions.
- `offset_reader`, `assignment`: the look-ups; `tasks`: ranges to tasks.
- `reporting/`: reports next to the batches.

Invariant: a plan is a function of start, end and options, so that a repeated batch reads the same records. Lost records
are refused before the end of a micro-batch is returned, because the engine keeps that end.
"""
