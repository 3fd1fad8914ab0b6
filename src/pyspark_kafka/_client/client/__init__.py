"""All conversation with Kafka brokers. No Spark, no options as strings, no decoding of records.

The rooms, from the ground up; each imports only what stands above it in this list:

- `wire/`: bytes to values and back. No socket, no clock.
- `waiting/`: how long, how often, and what is logged in the meantime.
- `reuse/`: connections that nobody uses now, and known brokers, for the next use.
- `tls/`, `login/`: how a connection is encrypted, and says who it is. Neither imports the other.
- `net/`: one connection to one broker.
- `cluster/`: which broker to ask: metadata, connections to many brokers, clients that tasks share.
- `queries/`: questions that change nothing: ends of logs, offsets by time, epochs, sizes, configurations, rights.
- `fetch/`, `produce/`, `transactions/`, `admin/`: reading, writing, transactions, topics. None imports another.

Entry point: `client.cluster.pool.borrow_client` lends a `KafkaClient`; `fetch`, `produce` and the others take one.
Invariant: every wait has a `Deadline`, and a connection belongs to one thread at a time.
Layer: client, above options.
"""
