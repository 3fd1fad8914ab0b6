"""How far streaming queries are behind: figures (`values`), the newest of each query (`store`), and who collects them.

Entry point: `listener.listen`; users import it from `pyspark_kafka.metrics`. Runs on the driver, or in the client of
Spark Connect. Invariant: a progress event that cannot be read is logged and disturbs no query.
"""

from pyspark_kafka._connector.spark.processes.required_version import require_pyspark

# Users import this room without the package's own names, which ask for PySpark.
require_pyspark()
