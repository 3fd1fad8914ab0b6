"""How long and how often a client tries, and what is logged in the meantime.

`deadline` bounds one step with all its retries, `retry` decides whether a failed request is sent again and has the loop
around it, `outage` repeats whole steps while a cluster is away, `stalls` logs what a wait is for.

Invariant: each wait ends. Layer: above wire, below reuse.
"""
