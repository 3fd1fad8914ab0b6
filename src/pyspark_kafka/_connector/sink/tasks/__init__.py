"""Transactions of tasks, with `exactlyOnceCommit=tasks`: plain data (`transactions`), their ids (`ids`), lost answers.

`outcomes` looks up how a transaction ended that its coordinator has forgotten.

Invariant: nothing here commits: `driver/tasks/` decides, and `executor/task_transaction_writer` writes.
"""
