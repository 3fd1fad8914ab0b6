"""Operations: the content of a streaming query's checkpoint, and changed copies of it.

Invariant: pure modules decide, one module does the I/O.
"""
