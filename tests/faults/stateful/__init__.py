"""Stateful queries of Spark on Kafka under kill -9, and the results that a computation in plain Python expects.

Which records are late is decided where they are made, so that every result is determined.
"""
