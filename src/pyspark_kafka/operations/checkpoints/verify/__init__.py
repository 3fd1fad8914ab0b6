"""Operations: what is wrong with a checkpoint, by its files and by the brokers.

- `file_checks`: the files alone.
- `cluster_snapshot` asks the brokers, `cluster_checks` judges what they answered.
- `findings`: what both find; `checksums`: Hadoop's.

Invariant: nothing is written, neither to the checkpoint nor to the cluster.
"""
