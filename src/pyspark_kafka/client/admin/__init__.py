"""Topics: created, changed, deleted. What the exactly-once sink, the embedded broker and the demo need.

Entry point: `topics`.
Invariant: only what the caller names is changed or deleted. Layer: client.
"""
