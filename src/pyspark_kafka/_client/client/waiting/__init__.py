"""The time and the number of a client's attempts, and the log lines of long waits.

`deadline` limits one step with all its retries; a part of the step takes a shorter deadline. `retry` has the one policy
that decides whether and how a failed request is retried, and the loop around a request; fetching and producing have
loops of their own, because they have many requests in flight. `outage` repeats whole steps of a streaming query that
has reached its cluster before, `stalls` logs the reason of a wait.

Invariant: each wait ends.
"""
