"""The connections between the driver and the tasks of a run.

`frames` has the form of what travels, `driver_side` and `task_side` the two ends.

Invariant: bytes become messages only if a member of the run signed them; JSON, never pickle.
"""
