"""What a running stream tells others, beside its batches: Kafka's tools where it is, its user what may be lost.

Invariant: no trigger waits for it, and no failure of it fails a query. Nothing of it is read back.
"""
