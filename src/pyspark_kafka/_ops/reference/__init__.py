"""The conditions of errors: what happened, why, and what to do. `errors.md` is the source, docs/errors.md its page.

Invariant: no brokers, no Spark, nothing but the text of the package.
"""
