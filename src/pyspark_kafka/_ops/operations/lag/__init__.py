"""Operations: how far positions are behind the ends of the logs.

- `values`: a report of lag, by partition and by topic. `columns`: the same as Arrow.
- `compute`: the report of one partition, and rates between two reports; the arithmetic is `planning.lag`.
- `positions`: of a checkpoint, or of a consumer group.
- `measure`: asks the brokers. `api`: `pyspark_kafka.lag`.

Invariant: pure modules decide, one module asks; what is not known is None and has its reason.
"""
