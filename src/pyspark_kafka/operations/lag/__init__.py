"""Operations: how far positions are behind the ends of the logs.

- `values`: a report of lag, by partition and by topic. `columns`: the same as Arrow.
- `figures`: the arithmetic of one partition, and of two looks.
- `positions`: of a checkpoint, or of a consumer group.
- `measuring`: asks the brokers. `looking`: `pyspark_kafka.lag`.

Invariant: pure modules decide, one module asks; what is not known is None and has its reason. Layer: operations.
"""
