"""Operations: topics of a cluster.

`asking` asks the brokers; `summaries`, `descriptions` and `sizes` are what it finds, and compute with it.

Invariant: nothing is changed but a topic that the caller names is created; a broker that does not respond costs only
its part, and what is missing is said. Layer: operations.
"""
