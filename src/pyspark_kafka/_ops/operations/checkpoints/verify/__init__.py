"""The faults of a checkpoint, by its files and by the brokers.

- `file_checks`, `log_checks`, `state_checks`: the files alone, read by `file_judge`.
- `cluster_snapshot` reads from the brokers the names and offsets of an `expectation`, `cluster_checks` compares them
  with the checkpoint.
- `findings`: the results of both; `checksums`: Hadoop's checksums.

Invariant: nothing is written, neither to the checkpoint nor to the cluster.
"""
