"""Bytes to values and back: frames, kafka-python's request classes, the table of broker error codes.

`messages` has the request and response classes, which `kafka_package` imports without kafka-python's clients;
`token_requests` are four that it lacks, `framed_request` are classes that build their own bytes. `frames` reads and
writes frames, `api_versions` agrees on versions, `completeness` and `nulls` check responses. `error_codes` is the
table, `missing_rights` the right that a broker found missing.

Entry points: `messages`, `error_codes.broker_error`.
Invariant: no socket and no clock; no other room imports kafka-python.
"""
