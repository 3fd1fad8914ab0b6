"""Bytes to values and back: frames, kafka-python's request classes, the table of broker error codes.

Entry points: `messages` (request and response classes), `error_codes.broker_error`.
Invariant: no socket and no clock; kafka-python is imported here and nowhere else. Layer: client.
"""
