"""What every engine does around the contracts: it checks what a mistake makes dangerous, and replaces optional methods.

Entry points: `checked_reader.CheckedReaderFactory`, with the `checks` of return values;
`available_now.admission_control_of`.
Invariant: a check changes nothing that keeps its contract.
"""
