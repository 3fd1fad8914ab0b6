"""JSON: values of one document each, as Arrow columns.

`decoding` reads with arro3 (Rust's arrow-json), in chunks that fit into CPU caches; arrow-json decides what a number
is in a column, such as 1 for 1.5 in whole numbers. `documents` finds values that are not JSON, `refusals` the rows
that arrow-json refuses, `cells` counts the cells that it would allocate, `decimals` rewrites numbers that it misreads.
`encoding` writes the `plain_types`. `document_parts` and `text_fields` are about parts that are text in JSON and
something else in a column, `time_patterns` about time patterns.

Invariant: a value does not change how another value is read: an unclosed document is an error of its own row.
"""
