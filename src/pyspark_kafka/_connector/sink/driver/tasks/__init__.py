"""The driver of an exactly-once micro-batch whose tasks publish (`exactlyOnceCommit=tasks`).

`exactly_once` is the write job, `commits` decides that the tasks' transactions are committed and ends them,
`commit_calls` has the requests for that.

Invariant: the decision is in the commit topic before the first transaction ends.
"""
