"""JSON: values of one document each, as Arrow columns.

`decoding` reads with arro3 (Rust's arrow-json), `locating` finds the bad values of a batch, `encoding` writes.

Invariant: no value changes what another is read as: a document that is not closed is an error of its own row.
Layer: formats.
"""
