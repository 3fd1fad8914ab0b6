"""The `pyspark-kafka` program. Uses the package as a user would; nothing below imports it."""
