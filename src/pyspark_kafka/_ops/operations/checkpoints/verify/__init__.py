"""Operations: the faults of a checkpoint, by its files and by the brokers.

- `file_checks`: the files alone.
- `cluster_snapshot` asks the brokers, `cluster_checks` compares their responses with the checkpoint.
- `findings`: the results of both; `checksums`: Hadoop's checksums.

Invariant: nothing is written, neither to the checkpoint nor to the cluster.
"""
