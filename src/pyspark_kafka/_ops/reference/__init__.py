"""The conditions of errors: what happened, why, and what to do. `errors.md` beside `errors.py` is the source.

Invariant: no brokers, no Spark, nothing but the text of the package.
"""
