"""A door for one setting of Spark, `spark.python.daemon.module`: see `daemon`.

Invariant: nothing but doors to `_connector/spark/`.
"""

__all__ = ["daemon"]
__dir__ = __all__.copy
