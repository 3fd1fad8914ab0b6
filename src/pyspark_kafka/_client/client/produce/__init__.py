"""Writing: record batches to the leaders of their partitions, in order and without duplicates.

- `producer`: the calls. `pool`: producers that tasks share. `partition_counts`: the partitions of written topics.
- `batches/` decides: order, sequences, retries. `delivery/` does: connections, waiting, time.
- `request`, `response`, `stamps`: bytes. `identity`: the writer. `leaders`: the receivers. `errors`: the texts.

Entry points: `pool.borrow_producer`, `producer.Producer`.
Invariant: `batches/`, which has no socket and no clock, decides what is sent and when.
"""
