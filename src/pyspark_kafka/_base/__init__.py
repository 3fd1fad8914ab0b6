"""What every storey stands on: topic-partitions and offsets, counters, interrupts, the choice of compiled kernels.

Private. Invariant: arithmetic and JSON, without brokers and Spark.
"""
