"""Avro: a codec between values of the binary encoding and Arrow columns.

`schema` reads the JSON of a schema; `resolution` makes of a writer's and a reader's schema a tree of the kernel's steps
over the `columns` of the result; `decoding` and `encoding` run them. `_kernel_read` and `_kernel_write` are the hot
loops: the same source runs compiled and as plain Python (`_variant`).

Entry points: `schema.parse_schema`, `decoding.AvroDecoder`, `encoding.AvroEncoder`. Invariant: every length and count
is compared with what is left before it is used. Both variants of the kernel return the same.
"""
