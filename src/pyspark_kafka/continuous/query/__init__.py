"""A continuous query on the driver.

`builder` and `writer` have the methods that users call, with their `arguments`, `windows`, `time_modes` and the
`spark_names` that are missing here; `frame_plan` is the result. `handle` is the object of a started query, `runner` the
thread of the query, with one run after the other, `failures` decides about restarts. `streams` are the queries of this
process, `terminal` shows a query as a line that changes.

Invariant: one thread, the thread of `runner`, plans and decides.
"""
