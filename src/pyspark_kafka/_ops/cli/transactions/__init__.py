"""`pyspark-kafka transactions`: open transactions, listed and aborted; a loss, resolved.

`app` has the commands and their options, `work` executes them, `text` shows the result.

Invariant: a transaction is aborted, and a loss resolved, only by its id, and after a question.
"""
