"""Which broker to ask: metadata, leaders, connections to many brokers, clients that tasks share.

Entry points: `pool.borrow_client`, `kafka_client.KafkaClient`.
Invariant: what a cache says is asked for again before it becomes an error.
"""
