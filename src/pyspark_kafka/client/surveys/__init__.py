"""Questions about many partitions, of which some may have no answer: what each broker tells, and why it does not.

Entry points: `logs.survey_logs`, `record_times.fetch_record_times`, `topic_configs.fetch_topic_configs`,
`group_offsets.fetch_group_offsets`.
Invariant: what one broker, topic or partition does not tell costs no other one; a broker that was silent is not asked
again. Layer: client.
"""
