"""Reading: the bytes of topic-partition ranges, from the brokers that have them.

Entry point: `fetcher.Fetcher`, iterated over for ranges that end, polled for ranges without an end. It has sockets and
time, and executes what the room `session/` decides. `cursor.Cursor` is one range; `preferred_replica` and
`topic_identity` are the replica and the topic that it is read from.

`lanes` are the connections, one for each broker; `request`, `response` and `errors` translate; `progress_timeout` ends
a read without progress. `record_times` looks up the times of records at positions.

Invariant: each offset of a range is returned once, in order, in whatever order responses arrive. Decisions are pure:
`session/`, `cursor`, `preferred_replica`, `topic_identity`, `request`, `response`, `errors` have no sockets and no
clock.
"""
