"""What outlives one use: connections that nobody uses now (`idle_pool`), and known brokers (`learned_servers`).

Invariant: each entry can be lost at any time, and none is used after a fork. Layer: above waiting, below tls.
"""
