"""A continuous query on the driver.

`builder` and `writer` have the methods that users call, `handle` is what they hold, `runner` the thread that runs the
query: one run after the other. `streams` knows the queries of this process,
`terminal` shows one as a line that changes.

Invariant: one thread, the thread of `runner`, plans and decides. Layer: continuous, above spark/.
"""
