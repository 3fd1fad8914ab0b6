"""Administration: `topics` creates topics, `tokens` creates, renews, expires and describes delegation tokens.

Invariant: only what the caller names is changed.
"""
