"""Protobuf: values of one message each, as Arrow columns.

`descriptors` finds the message in a schema, `message_index` reads which message of a schema a value is, `outline` walks
over values before they are read, `decoding` reads, `encoding` writes; `handler` is the border to ptars (Rust).

Invariant: descriptors are kept in pools of their own, never in the pool of the process: names of two versions of a
schema would clash.
"""
