"""Transactions of tasks, with `exactlyOnceCommit=tasks`.

`transactions` has them and the decision on them as plain data, `ids` lends transactional ids to the tasks of a host,
`outcomes` looks up how a transaction ended that its coordinator has forgotten.

Invariant: nothing here commits: `driver/tasks/` decides, and `executor/task_transaction_writer` writes.
"""
