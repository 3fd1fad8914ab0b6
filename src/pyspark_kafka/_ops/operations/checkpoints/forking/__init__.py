"""Changes of a checkpoint: a new one that starts at an earlier or later place, or the same one moved there.

- `places`: the place that a user names: a time, a batch, offsets.
- `snapshot`, `log_bounds`: the state of the checkpoint and of the brokers; they read, and decide nothing.
- `plan`: the files of the other checkpoint, and the consequences; `state_files`, `identities` and
  `raw_log` are parts of it. Pure.
- `explain`: a plan in words. Pure.
- `apply`: writes the files of a new checkpoint; `rewind` changes the same one, with a backup; `backups` makes and
  restores backups.

Invariant: a plan is complete before the first file is written, and the file `metadata` is written last: every program
that starts a query refuses an unfinished checkpoint.
"""
