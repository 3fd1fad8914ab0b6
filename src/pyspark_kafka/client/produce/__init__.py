"""Writing: record batches to the leaders of their partitions, in order and without duplicates.

Entry points: `pool.borrow_producer`, `producer.Producer`.
Invariant: `batches` decides (sequences, retries, what a response means), `producer` does (sockets, waiting).
Layer: client.
"""
