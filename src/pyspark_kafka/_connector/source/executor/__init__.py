"""The executor side of the source: fetch, decode, return rows as Arrow batches.

Entry points: `partition_reader` reads the ranges of one task, `continuous_reader` ranges without an end, whose
positions it reports (`partition_offset`). `range_decoder` decodes one response and decides about its lost records.
`assembler` chooses how Arrow batches are assembled: `columns` for bytes, `typed_columns` for typed keys and values.
`bad_records` handles unreadable records. `traced_reader` puts a span around a task, whose links `header_sampler` finds.

Invariant: a task reads the planned ranges, or fails. About offsets it decides nothing but the place of an open end.
"""
