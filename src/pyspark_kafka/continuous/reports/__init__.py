"""What a continuous query tells about itself.

`progress` has the figures of its epochs, `events` hands them to listeners, `streams` knows the queries of this process,
`terminal` shows one as a line that changes, `run_log` has the warnings of a run, `explain` prints the plan.

Invariant: nothing here ends or delays a query; figures that cannot be read are left out. Layer: continuous.
"""
