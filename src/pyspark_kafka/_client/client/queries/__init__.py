"""Requests that change nothing, usually one to each broker, side by side.

- Logs: `offsets` (ends, offsets by time; messages: `offset_messages`), `logs` with `log_sizes`, `leader_epochs`.
- Topics: `topic_configs`, `missing_topics`.
- For a diagnosis: `listener` (the protocol of a listener), `rights`, `brokers` (releases and clocks).

Entry points: `offsets.list_offsets`, `logs.query_logs`, `leader_epochs.fetch_epoch_ends`.
Invariant: one silent broker does not use up the time of the others.
"""
