"""One run of a continuous query: one plan, on one set of tasks.

`planner` plans the run, also for fewer slots than `tasks`; `machine` decides what it does next, and `run` does it:
`events` go in, `effects` come out. `commits` commits the epochs, `states` the states of their functions: it
also deletes the states of key groups that are read no more. `waits` has the calls that wait for rows, and
`partition_watch` polls the source on a thread of its own.

Invariant: the machine has no clock, no thread and no socket. Epochs are committed one at a time, in order, on the
thread of `commits.EpochCommitter`, which has ended before the next run is planned.
"""
