"""A continuous query on the driver.

`builder` has the words that users write, `handle` is what they hold, `runner` the thread that runs the query, `run` one
set of tasks of it, `commits` how its epochs are committed, `waits` who waits for rows. `partition_watch` asks the
source beside that thread.

Invariant: one thread, that of `runner`, plans, commits and writes the checkpoint. Layer: continuous, above spark/.
"""
