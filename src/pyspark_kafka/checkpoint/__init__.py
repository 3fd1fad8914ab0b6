"""Spark's checkpoint files, read and written as Spark does: the offset log, initial offsets, recreated topics.

Entry points: `files.CheckpointFiles`, `offset_log`, `initial_offset_log`.
Invariant: Spark's own connector can go on from every file that is written here. Layer: checkpoint.
"""
