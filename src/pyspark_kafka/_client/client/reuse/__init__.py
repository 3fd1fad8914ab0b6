"""State that outlives one use: idle clients and producers (`idle_pool`), and known brokers (`learned_servers`).

Invariant: each entry can be lost at any time, and none is used after a fork.
"""
