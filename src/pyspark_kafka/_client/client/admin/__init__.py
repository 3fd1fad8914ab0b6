"""What is administered: new topics, for exactly-once sinks, commands and the embedded broker; delegation tokens.

Entry points: the functions of `topics` and `tokens`.
Invariant: only what the caller names is changed.
"""
