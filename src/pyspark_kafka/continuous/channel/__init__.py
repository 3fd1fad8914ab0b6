"""The connections between the driver and the tasks of a run.

`frames` has the form of messages, `driver_side` and `task_side` are the two ends, and give up a silent peer,
`task_reports` gathers the reports of a task's lanes, `file_limit` bounds the number of tasks by open files.

Invariant: bytes become messages only if a member of the run signed them; JSON, never pickle.
"""
