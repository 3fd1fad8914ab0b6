"""All I/O to Kafka.

The rooms, each importing only rooms above it in this list:

- `wire/`: bytes to values and back, and the table of error codes.
- `waiting/`: the time and the number of retries, and the log lines of long waits.
- `reuse/`: idle connections and known brokers, for the next use.
- `tls/`, `login/`: the encryption and the login of a connection. Neither imports the other.
- `net/`: one connection to one broker.
- `cluster/`: the choice of a broker: metadata, connections to many brokers, shared clients.
- `queries/`: requests that change nothing: offsets, log sizes, leader epochs, configurations, rights, clocks.
- `transactions/`: our own transactional id, positions of consumer groups, transactions of other programs.
- `fetch/`, `produce/`, `admin/`: reading; writing; topics and delegation tokens. None imports another.

`fetch/` and `produce/` have the same structure: a state machine decides without I/O (`FetchSession`, `ProducerState`),
another part executes its decisions (`Fetcher`, `DeliveryLoop`), with a lane for each broker.

Entry point: `cluster.pool.borrow_client` lends a `KafkaClient`, which the functions of the upper rooms take.
Invariant: every wait has a `Deadline`, and a connection belongs to one thread at a time. Nothing here decodes records,
decides about data loss or sees options as strings.
"""
