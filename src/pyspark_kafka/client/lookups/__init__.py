"""Questions with one answer for each partition, with one request to each broker, side by side.

Entry points: `offsets.list_offsets`, `leader_epochs`, `log_sizes`, `missing_topics`.
Invariant: one silent broker does not use up the time of the others. Layer: client.
"""
