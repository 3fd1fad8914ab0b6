"""Transactions: our own (`owner`), and those of others as their coordinators know them (`inspection`).

Entry points: `owner.TransactionCoordinator`, `inspection`.
Invariant: no records pass here. Layer: client.
"""
