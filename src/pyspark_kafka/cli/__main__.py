"""`python -m pyspark_kafka.cli`: the program where its script is not on PATH."""

from pyspark_kafka.cli.main import main

main()
