"""Transactions: our own transactional id, other ids as their coordinators know them, and positions of groups.

Entry points: `owner.TransactionalId`; `inspection.list_transactions` and `inspection.describe_transaction`;
`group_commits.GroupCommits` for positions outside of a transaction.
Invariant: no records pass here; `produce/` writes them under an `OpenTransaction`.
"""
