"""Another checkpoint made of one: a new one that starts at an earlier or later place, or the same one moved there.

- `places`: what a user names: a time, a batch, offsets.
- `snapshot`, `log_bounds`: what the checkpoint and the brokers say; they read, and decide nothing.
- `plan`: which files the other checkpoint has, and what follows; `state_files`, `identities` and
  `raw_log` are parts of it. Pure.
- `explain`: a plan in words. Pure.
- `apply`: writes the files of a new checkpoint; `rewind` those of the same one, with a backup; `backups` makes those,
  and puts them back.

Invariant: a plan is whole before the first file is written, and the file `metadata` is written last: what is not
finished is refused by every program that starts a query.
"""
