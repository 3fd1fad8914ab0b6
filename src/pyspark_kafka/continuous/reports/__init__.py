"""Reports of a continuous query.

`progress` has the metrics of its epochs, `events` hands them to listeners, `run_log` has the warnings of a run.

Invariant: nothing here ends or delays a query; unreadable metrics are left out.
"""
