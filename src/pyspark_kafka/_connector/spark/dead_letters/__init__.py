"""Records that could not be read, as rows for the sink, and the way back: expressions over the columns of a DataFrame.

`letters` makes dead letters of the corrupt column, `redrive` sends them where they came from. `error_headers` has the
names of headers that Kafka Connect and Kafka Streams use, `sql` writes SQL and checks columns.

Entry points: `letters.dead_letters`, `letters.with_dead_letters`, `redrive.redrive`; users import them from
`pyspark_kafka`. Runs on the driver, or in the client of Spark Connect. Invariant: DataFrames get SQL only, so that the
same works for batch and streaming, classic and Connect; nothing is read or written here.
"""
