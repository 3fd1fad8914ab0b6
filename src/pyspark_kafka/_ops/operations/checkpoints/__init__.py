"""The content of a streaming query's checkpoint, of any engine and connector.

`query_checkpoint` reads it, with its `batches` and the `state_chains` of a continuous query; `unfinished` is the note
of a change in progress. `summary` and `describe` show it, `differences` compares two. `verify/` finds faults,
`forking/` writes changed copies.

Invariant: pure modules decide, one module does the I/O.
"""
