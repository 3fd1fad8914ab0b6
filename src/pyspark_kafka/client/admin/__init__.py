"""Topics: created, changed, deleted, for the commit topic of exactly-once sinks, the embedded broker and the demo.

Entry points: the functions of `topics` and `topic_records`.
Invariant: only what the caller names is changed or deleted. Layer: client.
"""
