"""Sends the record batches of a producer and takes the responses: connections, waiting, time.

Entry point: `loop.DeliveryLoop`, which a `Producer` steps. `lanes` are the connections, with the requests in flight,
`receiver` takes responses and leaves silent brokers, `failures` keeps why attempts failed, `parts` is what all of them
share.

Invariant: `batches/` decides what is sent, when, and what a response means; this room does it.
"""
