"""Fault tests of exactly-once writes: what is sent, what is killed and where, and a check of what readers then see.

The check reads Kafka with another client and shares nothing with the sink.
"""
