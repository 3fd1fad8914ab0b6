"""Functions on columns of any DataFrame, for expressions and SQL.

Entry points: `values.decode_udf`, `values.encode_udf`, which `pyspark_kafka.formats` shows.

Invariant: `_typed/typed/` decides what a value becomes; here are PySpark's functions around it.
"""

from pyspark_kafka._connector.spark.processes.required_version import require_pyspark

# Users import this room without the package's own names, which require PySpark.
require_pyspark()
