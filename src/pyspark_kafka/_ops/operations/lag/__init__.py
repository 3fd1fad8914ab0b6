"""The lag of positions behind the ends of the logs.

- `api`: `pyspark_kafka.lag`, the whole measurement; `measure`: its requests.
- `positions`: of a checkpoint, or of a consumer group.
- `compute`: the report of one partition, its seconds behind, and rates between two reports; the arithmetic of offsets
  is `planning.lag`.
- `values`: a report of lag, by partition and by topic. `columns`: the same as Arrow.

Invariant: pure modules decide, one module sends requests; an unknown value is None and has its reason.
"""
