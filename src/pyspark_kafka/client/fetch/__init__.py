"""Reading: the bytes of ranges of partitions, from whichever brokers have them.

Entry point: `fetcher`.
Invariant: each offset of a range is returned once, in order, whatever order responses arrive in. Layer: client.
"""
