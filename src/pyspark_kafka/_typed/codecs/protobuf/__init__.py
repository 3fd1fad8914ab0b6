"""Protobuf: values of one message each, as Arrow columns.

- `proto_text` compiles a schema, with the `known_files` that registries lack; `descriptors` finds its message
  and the column that it becomes, `field_selection` leaves fields out.
- `message_index` reads which message of a schema a value is; `by_schema` reads values that have a schema each.
- `outline` walks over values before they are read, with `_kernel_outline`, compiled or not (`_variant`): it finds bad
  values, limits depth and cells, and merges repeated fields.
- `decoding` reads, `encoding` writes, `map_items` completes maps; `handler/` is the border to ptars (Rust).

Invariant: descriptors are kept in pools of their own, never in the pool of the process: names of two versions of a
schema would clash.
"""
