"""The program `pyspark-kafka`: `version`, `check`, `demo`, `transactions`.

Entry point: `main.main`. A command imports what it needs when it runs, so that `--help` needs no Spark. Invariant: the
program uses the package as a user does, and nothing imports it.
"""
