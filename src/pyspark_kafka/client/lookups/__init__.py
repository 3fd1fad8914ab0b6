"""Look-ups with one result for each partition, by one request to each broker, side by side.

Entry points: `offsets.list_offsets`, `leader_epochs.fetch_epoch_ends`, `log_sizes.fetch_log_sizes`,
`missing_topics.explain_missing_topic`.
Invariant: one silent broker does not use up the time of the others. Layer: client.
"""
