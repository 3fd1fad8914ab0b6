"""Reports of a running stream, next to its batches: its position for Kafka's tools, warnings of data loss for its user.

Invariant: no trigger waits for a report, no failure of a report fails a query, and no query reads a report back.
"""
