"""Operations: metrics of a checkpoint as a page.

Invariant: pure modules decide, one module does the I/O.
"""
