"""What a continuous query tells about itself.

`progress` has the metrics of its epochs, `events` hands them to listeners, `run_log` has the warnings of a run.

Invariant: nothing here ends or delays a query; metrics that cannot be read are left out.
"""
