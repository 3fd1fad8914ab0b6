"""The driver side of the sink: write jobs, and what makes a micro-batch visible exactly once.

Entry points: `at_least_once`, `exactly_once`; the commit itself: `publisher.Publisher`.
Invariant: a commit marker is in the same transaction as the records of its micro-batch.
"""
