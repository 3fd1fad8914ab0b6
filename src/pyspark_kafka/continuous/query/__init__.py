"""A continuous query on the driver.

`builder` has the words that users write, `handle` is what they hold, `runner` the thread that runs the query, `run` one
set of tasks of it, `commits` how its epochs are committed, `waits` who waits for rows. `partition_watch` asks the
source beside that thread.

Invariant: one thread, that of `runner`, plans and decides; epochs are committed one at a time, in order, on the thread
of `commits.EpochCommitter`, which has ended before the next run is planned. Layer: continuous, above spark/.
"""
