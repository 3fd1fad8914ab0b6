"""Transactions: our own transactional id, the ids of other programs, and positions of consumer groups.

`owner` fences, joins and ends under our own id, for the `open_transaction` that `produce/` writes in; `group_positions`
reads positions and sets them as part of a transaction, `group_commits` sets them outside of one, both in
`position_parts`. `inspection` lists and describes any transaction. `coordinator` finds the broker that has the state,
`errors` has the meaning of its codes.

Entry points: `owner.TransactionalId`; `inspection.list_transactions` and `inspection.describe_transaction`;
`group_commits.GroupCommits`.
Invariant: no records pass here; `produce/` writes them under an `OpenTransaction`.
"""
