"""Codecs of values as Arrow columns: without Kafka, without Spark.

`avro` has a codec of its own, `json` reads and writes with arro3, `protobuf` with ptars. `wire_format` reads the schema
id before each value, `framed` reads an array of several schemas. `values` has the result of every decoder.

Invariant: pure computation over Arrow arrays. An unreadable value does not affect other values: its row is null, and
reported. Kafka and Spark are absent.
"""
