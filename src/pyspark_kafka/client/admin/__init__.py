"""What is administered: topics, for the commit topic of exactly-once sinks and the embedded broker; delegation tokens.

Entry points: the functions of `topics`, `topic_records` and `tokens`.
Invariant: only what the caller names is changed or deleted. Layer: client.
"""
