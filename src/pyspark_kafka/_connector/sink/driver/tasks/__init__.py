"""The driver of an exactly-once micro-batch whose tasks publish: `exactly_once` is the write, `commits` the decision.

`commit_calls` has the requests. Invariant: the decision is in the commit topic before the first transaction ends.
"""
