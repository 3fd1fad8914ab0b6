"""The record batches of a producer: their order, their sequences, retries, and what a response means for them.

Entry point: `state.ProducerState`. `producer_batch` has the states of a batch and its transitions, `partition_queue`
the order of one partition, `sequences` the identity that outlives tasks, `size_limits` the batch sizes that topics
accept, `verdicts` the meaning of error codes.

Invariant: pure, with no socket and no clock; times are arguments. This room decides, `delivery/` does.
"""
