"""Values that are one text, number or UUID each, without a schema.

Entry points: `text.TextDecoder`, `kafka_values.NumberDecoder`, `kafka_values.UuidDecoder`.

Invariant: pure. A value of another length is bad, and never padded or cut.
"""
