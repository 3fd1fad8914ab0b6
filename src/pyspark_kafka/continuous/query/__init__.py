"""A continuous query on the driver.

`builder` has the words that users write, `handle` is what they hold, `runner` the thread that runs the query, `run` one
set of tasks of it, `commits` how its epochs are committed, `progress` what it reports.

Invariant: one thread, that of `runner`, talks to stream, sink and checkpoint. Layer: continuous, above spark/.
"""
