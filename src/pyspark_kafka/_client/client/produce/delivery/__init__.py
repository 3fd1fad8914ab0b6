"""Sends the record batches of a producer and takes the responses: connections, waiting, time.

Entry point: `loop.DeliveryLoop`, which a `Producer` steps.
Invariant: `batches/` decides what is sent, when, and what a response means; this room does it.
"""
