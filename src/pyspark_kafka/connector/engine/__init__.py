"""The engine's part around the contracts: it checks for dangerous mistakes, and replaces optional methods.

Entry points: `checked_reader.CheckedReaderFactory`, with the `checks` of return values;
`available_now.admission_control_of`.
Invariant: a check changes nothing that keeps its contract.
"""
