"""The driver side of the source: where reads start and end, and which task reads what. Never touches records.

Entry points: `micro_batch.KafkaMicroBatchStream`, `batch.KafkaBatch`.
Invariant: a plan is a function of start, end and options, so that a batch that is run again reads the same records.
Layer: source.
"""
