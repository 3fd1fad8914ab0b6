"""The steps of a check, one module each, in the order in which they run: `run.STEPS`.

A step is a function that takes the context of the check and yields findings. A step that fails in a way that leaves
nothing to check for the later ones says why in `Context.blocked`.

Invariant: nothing on the cluster is changed, and neither a secret nor the content of a record is in a finding.
"""
