"""Questions to the cluster, mostly by one request to each broker, side by side; nothing is changed by them.

Entry points: `offsets.list_offsets`, `logs.query_logs`, `leader_epochs.fetch_epoch_ends`, `log_sizes.fetch_log_sizes`,
`topic_configs.fetch_topic_configs`, `missing_topics.explain_missing_topic`; for a diagnosis `listener.probe_listener`
and the functions of `rights` and `brokers`.
Invariant: one silent broker does not use up the time of the others.
"""
