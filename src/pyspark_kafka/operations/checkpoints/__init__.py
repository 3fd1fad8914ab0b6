"""Operations: what a checkpoint of a streaming query says, and how another is made of it.

Invariant: pure modules decide, one module asks.
"""
