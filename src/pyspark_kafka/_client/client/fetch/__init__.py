"""Reading: the bytes of ranges of topic-partitions, from the brokers that have them.

Entry point: `fetcher.Fetcher`, iterated over for ranges that end, polled for those without. It has sockets and time,
and does what `session.FetchSession` decides. `session` tells the story of a response. `cursor.Cursor` is one range,
`routing` says which broker is asked for which ranges.

Invariant: each offset of a range is returned once, in order, in whatever order responses arrive. Decisions are pure:
`session`, `cursor`, `routing`, `origin`, `request_size`, `request`, `response`, `errors` have no sockets and no clock.
"""
