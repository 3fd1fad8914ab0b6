"""Transactions: our own transactional id, and the transactions of others as their coordinators know them.

Entry points: `owner.TransactionalId`; `inspection.list_transactions` and `inspection.describe_transaction`.
Invariant: no records pass here; `produce/` writes them under an `OpenTransaction`. Layer: client.
"""
