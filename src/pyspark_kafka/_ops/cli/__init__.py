"""The program `pyspark-kafka`: `version`, `check`, `demo`, `transactions`.

Entry point: `__main__.main`, and `main.main` where the extra `cli` is installed. A command imports what it needs when
it runs, so that `--help` needs no Spark. Invariant: the program uses the package as a user does, and nothing else
imports it.
"""
