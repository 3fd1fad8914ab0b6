"""The choice of a broker: metadata, leaders, connections to many brokers, shared clients.

- `kafka_client`: the cluster as one task sees it. `pool`: clients that the tasks of a process share.
- `metadata`, `metadata_request`, `metadata_cache`: its values, its request, and the memory of one client.
- `bootstrap`: the connection to the first of the `known_servers` that responds. `broker_connections`: the open
  connections of a client.
- `any_broker`: a request that any broker can serve, sent to a second broker if the first is silent. `fanout`: one
  request to each of many brokers. `leaders`: the leaders of partitions.
- `errors`: unknown or unreachable brokers.

Entry points: `pool.borrow_client`, `kafka_client.KafkaClient`.
Invariant: a cached value is looked up again before it becomes an error.
"""
