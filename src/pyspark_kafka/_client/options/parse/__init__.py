"""Text to value, one option at a time: numbers and words, times, JSON of offsets, JAAS configurations.

A parser raises `ValueError` with a sentence that starts with a verb and does not name the option, which its caller
knows.

Invariant: a parser of a secret never repeats the text; no clock, no I/O. Layer: options.parse, above options.values.
"""
