"""The program `pyspark-kafka`: a folder or module for each command, and `common/` for all of them.

Entry point: `main.main`, which `pyspark_kafka.__main__` calls where the extra `cli` is installed. `demo` has its
`orders`. A command imports what it needs when it runs, so that `--help` needs no Spark.

Invariant: the program uses the package as a user does, and nothing else imports it.
"""
