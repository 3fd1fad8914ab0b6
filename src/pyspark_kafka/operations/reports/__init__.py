"""Operations: figures of a checkpoint as a page.

Invariant: pure modules decide, one module asks.
"""
