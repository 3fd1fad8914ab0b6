"""The version of the package, sent to brokers and shown to users, and the address of its documentation."""

__version__ = "0.2.0"

DOCUMENTATION = "https://pyspark-kafka.github.io/pyspark-kafka/"
