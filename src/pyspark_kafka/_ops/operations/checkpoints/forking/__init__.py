"""Changes of a checkpoint: a new one that starts at an earlier or later place, or the same one moved there.

- `places`: the place that a user names: a time, a batch, offsets; `positions`: its offsets in each source. Pure.
- `snapshot`, `log_bounds`: the state of the checkpoint and of the brokers; they read, and decide nothing.
- `plan`: the files of the other checkpoint, and the consequences; `state_files`, `identities` and `raw_log` are parts
  of it. Pure.
- `explain`: a plan in words. Pure.
- `apply`: writes the files of a new checkpoint; `rewind` refuses one in use, and changes it with a backup; `backups`
  makes and restores backups.

Batch numbers never go back for one query id, because sinks recognize committed batches by them; `plan` has the two
exceptions.

Invariant: a plan is complete before the first file is written, and the file `metadata` is written last: every program
that starts a query refuses an unfinished checkpoint.
"""
