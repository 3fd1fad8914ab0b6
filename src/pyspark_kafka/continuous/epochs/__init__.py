"""Epochs of a continuous query.

`coordinator` decides when they end and in which order they are committed, `pace` how long they are; `epoch_files` keeps
them in the checkpoint and deletes old ones, `recovery` finds where a query continues. `messages` are exchanged between
driver and tasks, `latencies` are the metrics of lanes in them.

Invariant: an epoch is committed once every lane has reported it and every earlier one is committed. Pure, but for
`recovery` and `epoch_files`, which read and write the checkpoint.
"""
