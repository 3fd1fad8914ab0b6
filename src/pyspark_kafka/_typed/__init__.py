"""Values as typed columns: codecs, schema registries, and the types that both have in Spark.

Private: its doors are the options of a read or a write, and `pyspark_kafka.formats`.
Invariant: an unreadable value affects no other value.
"""
