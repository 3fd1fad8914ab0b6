"""A continuous query on the driver.

`builder` and `writer` have the methods that users call, `handle` is the object of a started query, `runner` is the
thread of the query, with one run after the other. `streams` knows the queries of this process,
`terminal` shows a query as a line that changes.

Invariant: one thread, the thread of `runner`, plans and decides. Layer: continuous, above _connector/spark/.
"""
