"""Avro: a codec between values of the binary encoding and Arrow columns.

`schema` reads the JSON of a schema, with its `logical_types`; `resolution` makes of a writer's and a reader's schema a
tree of the kernel's steps over the `columns` of the result; `decoding` and `encoding` run them. `by_schema` reads
values that have a schema each, `derivation` finds the schema of columns. `_kernel_read` and `_kernel_write` are the hot
loops over `arrow_memory`: the same source runs compiled and as plain Python (`_variant`).

Entry points: `schema.parse_schema`, `decoding.AvroDecoder`, `encoding.AvroEncoder`. Invariant: every length and count
is compared with the remaining bytes before it is used. Both variants of the kernel return the same.
"""
