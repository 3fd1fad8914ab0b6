"""Codecs of values as Arrow columns: without Kafka, without Spark.

- `column_decoder` reads a column of keys or values, `column_encoder` writes one, as a `column_format` says:
  `wire_format` finds the schema id before each value or in a header, `framed` reads an array of several schemas,
  `projection` selects the wanted fields.
- `avro/` has a codec of its own, `json/` reads and writes with arro3, `protobuf/` with ptars; `plain/` has texts,
  numbers and UUIDs.
- `values` is the result of every decoder, `schemas` the interface to a registry, `bounds` and `parts` limit memory,
  `zigzag` reads varints.

Invariant: pure computation over Arrow arrays. An unreadable value does not affect other values: its row is null, and
reported. Every length and count is compared with the remaining bytes before it is used.
"""
