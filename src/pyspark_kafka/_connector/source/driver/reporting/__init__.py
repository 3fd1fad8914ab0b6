"""Reports of a running stream, next to its batches: its position for Kafka's tools, warnings of data loss for its user.

`finished` has the finished batches, `group_offsets` commits their ends to a consumer group, `headroom_warnings` warns
before brokers delete unread records. `latest_value_worker` is their thread, `log_rate_limiter` limits repeated
warnings.

Invariant: no trigger waits for a report, no failure of a report fails a query, and no query reads a report back.
"""
