"""The ground of every storey: topic-partitions and offsets, counters, interrupts, the choice of kernels.

`model` has topic-partitions and ranges, `offsets/` source offsets and range edges. `counters` counts the retries and
outages of a process, `interrupt` has the event that ends the waits of a thread, `threads` calls things side by side and
at intervals, `compiled` loads kernels that Cython compiled, or their source. `traces/` has the spans of queries.

Private. Invariant: nothing of Kafka's protocol, of Spark or of users' options.
"""
