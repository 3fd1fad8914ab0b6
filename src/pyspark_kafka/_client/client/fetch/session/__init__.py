"""The next step in a read from many topic-partitions: a state machine. It decides, `fetcher.Fetcher` acts.

Entry point: `session.FetchSession`, which tells the story of a response. `ranges` has what the caller wants, what is
planned and what failed, `brokers` what is in flight to each broker, `routing` which ranges are read from which broker,
`lookups` the questions to the cluster; `steps` are the values that the fetcher gets. One range is a `Cursor`, of the
room above.

Invariant: pure. No sockets and no clock; times are arguments, in seconds of the caller's choice. What the client
remembers about the cluster is an argument, too (`steps.ClusterMemory`).
"""
