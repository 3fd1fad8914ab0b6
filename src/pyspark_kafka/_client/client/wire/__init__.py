"""Bytes to values and back: frames, kafka-python's request classes, the table of broker error codes.

Entry points: `messages` (request and response classes), `error_codes.broker_error`.
Invariant: no socket and no clock; only this room and `login/` import kafka-python.
"""
