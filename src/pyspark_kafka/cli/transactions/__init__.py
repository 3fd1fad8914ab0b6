"""`pyspark-kafka transactions`: open transactions, listed and aborted.

`app` has the commands and their options, `work` does what they say, `text` shows it.

Invariant: a transaction is aborted only by its id, and after a question.
"""
