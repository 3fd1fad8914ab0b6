"""Protobuf: values of one message each, as Arrow columns.

`descriptors` finds the message in a schema, `recursive_messages` makes bytes of messages within themselves,
`plain_schema` leaves what ptars (Rust) takes, and `message_handler` is the border to it. `message_index` reads which
message of a schema a value is, `outline` walks over values before they are read, `decoding` reads, `encoding` writes.

Invariant: descriptors are kept in pools of their own, never in the pool of the process: names of two versions of a
schema would clash.
"""
