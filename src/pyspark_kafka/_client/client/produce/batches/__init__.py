"""The record batches of a producer: their order, their sequences, retries, and what a response means for them.

Entry point: `state.ProducerState`. The states of a batch and its transitions: `producer_batch`.
Invariant: pure, with no socket and no clock; times are arguments. This room decides, `delivery/` does.
"""
