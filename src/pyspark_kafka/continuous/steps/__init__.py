"""The ready-made steps with state of a continuous query: windows, sessions, first rows of a key.

`windowed_rows` and `session_rows` aggregate in windows, of the bounds in `window_times`, the groups in `row_groups` and
the parts in `partial_aggregates`. `first_rows` drops duplicates.

Invariant: a step is a function of its rows and its state; the task that runs it is unknown here.
"""
