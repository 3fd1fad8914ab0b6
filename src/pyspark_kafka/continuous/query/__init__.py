"""A continuous query on the driver.

`builder` has the words that users write, `handle` is what they hold, `runner` the thread that runs the query, `job` its
Spark job, `progress` what it reports, `sessions` the address of the driver, `slots` how many tasks
it can have.

Invariant: one thread, that of `runner`, talks to stream, sink and checkpoint. Layer: continuous, above spark/.
"""
