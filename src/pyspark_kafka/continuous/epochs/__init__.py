"""Epochs of a continuous query.

`coordinator` decides when they end and in which order they are committed, `epoch_files` keeps them in the checkpoint,
`recovery` finds where a query continues, `messages` is what driver and tasks say to each other about them.

Invariant: an epoch is committed once every lane has reported it and every earlier one is committed. Pure, but for
`recovery` and `epoch_files`, which read and write the checkpoint.
"""
