"""JSON: values of one document each, as Arrow columns.

`decoding` reads with arro3 (Rust's arrow-json), `documents` finds what is not JSON, `refusals` what does not fit its
type, `encoding` writes.

Invariant: no value changes what another is read as: a document that is not closed is an error of its own row.
"""
