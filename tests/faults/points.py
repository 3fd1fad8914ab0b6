"""The moments at which a fault test stops a micro-batch, in the order in which a batch comes to them."""

from __future__ import annotations

PLANNING = {
    "latest_offset": "before the offset log is written",
    "partitions": "after the offset log, partitions planned",
    "stream_writer": "in streamWriter",
}
# In a task of the source, which is one of its own if the query has a shuffle.
READING = {"source_read": "in a task of the source, before its first rows"}
TASKS = {
    "task_row": "in a task, at its first row",
    "task_prepared": "in a task, after its commit message was made",
}
# In the driver's commit, and in an exactly-once one only.
PUBLISHING = {
    "before_fence": "before the transactional id is fenced",
    "after_fence": "after the fence",
    "before_produce": "after the marker was read, before the first record is sent",
    "within_produce": "between two sends",
    "before_end": "everything acknowledged, before EndTxn",
    "after_end": "after EndTxn, before the publisher knows",
}
COMMITTED = {"after_commit": "after the sink's commit, before Spark's commit log"}

# What every sink comes to, and what an exactly-once one does.
EVERYWHERE = {**PLANNING, **TASKS, **COMMITTED}
EXACTLY_ONCE = {**PLANNING, **TASKS, **PUBLISHING, **COMMITTED}

# Killed at the first, started again, and killed at the second while it recovers the same batch.
TWICE = {
    "task_row, recovery at before_end": ("task_row", "before_end"),
    "before_end, recovery at after_end": ("before_end", "after_end"),
    "after_end, recovery at after_fence": ("after_end", "after_fence"),
    "after_end, recovery at after_commit": ("after_end", "after_commit"),
}

# Of a query whose tasks publish.
DECIDING = {
    "before_plan": "before the sink's transactional id is taken over",
    "after_plan": "planned, before the tasks",
}
ENDING = {
    "before_decision": "everything acknowledged, before the decision is written",
    "before_end": "the decision is written, before the EndTxn that makes it visible",
    "after_decision": "decided, before the first task's EndTxn",
    "within_ends": "between the tasks' EndTxns",
    "before_complete": "all of them ended, before that is noted",
    "after_complete": "that is noted, before the sink's commit is done",
}
TASKS_PUBLISH = {**PLANNING, **DECIDING, **TASKS, **ENDING, **COMMITTED}
TASKS_PUBLISH_TWICE = {
    "task_prepared, recovery at before_decision": ("task_prepared", "before_decision"),
    "after_decision, recovery at within_ends": ("after_decision", "within_ends"),
    "within_ends, recovery at before_complete": ("within_ends", "before_complete"),
    "before_complete, recovery at after_complete": ("before_complete", "after_complete"),
    "before_end, recovery at after_plan": ("before_end", "after_plan"),
}
# By who sends the records: all points, pairs of them, and those at which the broker is killed.
PROTOCOLS = {
    "driver": (EXACTLY_ONCE, TWICE, ("before_produce", "within_produce", "before_end")),
    "tasks": (TASKS_PUBLISH, TASKS_PUBLISH_TWICE, ("before_decision", "before_end", "after_decision", "within_ends")),
}
