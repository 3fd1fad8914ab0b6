"""The steps of a check, in the order of `run.STEPS`.

`options`, `packages` (Python, and how a worker differs), `reach` (names and TCP), `tls`, `login`, `brokers`, `topics`,
`rights`, `record` (the first one), `registry`. A step is a function that takes the context of the check and yields
findings. A failed step that leaves nothing to check for later steps puts the reason in `Context.blocked`.

Invariant: nothing on the cluster is changed, and neither a secret nor the content of a record is in a finding.
"""
