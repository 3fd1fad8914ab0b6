"""Questions beforehand: what a listener speaks, which rights a user has, what time brokers have.

Entry points: `listener.probe_listener`, `rights.probe_topic_rights`, `clock.probe_clock`.
Invariant: no request here changes anything on the cluster. Layer: client.
"""
