"""Writing: record batches to the leaders of their partitions, in order and without duplicates.

- `producer`: the calls. `pool`: producers that tasks share. `partition_counts`: where rows may go.
- `batches/` decides: order, sequences, retries. `delivery/` does: connections, waiting, time.
- `request`, `response`, `stamps`: bytes. `identity`: who writes. `leaders`: where to. `errors`: the texts.

Entry points: `pool.borrow_producer`, `producer.Producer`.
Invariant: what is sent and when is decided in `batches/`, which has no socket and no clock.
"""
