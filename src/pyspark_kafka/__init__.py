"""Apache Kafka for PySpark: `format("pyspark_kafka")`, for batch and streaming, reading and writing.

PySpark finds `DefaultSource` here automatically: programs that only read and write need not import this package.

- `prepare()`: call it before the Spark session is created; Spark then runs this Python, which has the package.
- `check()`: checks a connection to Kafka step by step, and says what to change.
- `lag()`: how far a query or a consumer group is behind, in records, bytes and seconds, and how long records stay.
- `dead_letters()`, `with_dead_letters()`: records that could not be read, as rows for the sink.
- `redrive()`: sends them back to where they came from.
- `read_arrow()`: topics as Arrow batches for Polars, DuckDB, pandas and pyarrow, without Spark.
- `KafkaSource`: for programs that ask for their batches themselves; a batch is a DataFrame.
- `KafkaMicroBatchStream`: the micro-batch source behind a streaming query, to be driven by hand.

Other public modules: `continuous` (queries without micro-batches), `metrics` (how far queries are behind), `formats`
(typed values without Kafka), `records` (record batches without a broker), `checkpoint` (the files of a query),
`delegation_tokens` (logins without passwords), `connector` and `toolkit` (sources and sinks of your own), `testing` (a
real Kafka for tests and notebooks), `errors`.

Pages: <https://pyspark-kafka.github.io/pyspark-kafka/>; options: <https://pyspark-kafka.github.io/pyspark-kafka/options/>;
errors: <https://pyspark-kafka.github.io/pyspark-kafka/errors/>.

Each name is loaded when it is first used, so that the parts that need no Spark work without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyspark_kafka.version import __version__

if TYPE_CHECKING:
    from pyspark_kafka._connector.source.driver.micro_batch import KafkaMicroBatchStream
    from pyspark_kafka._connector.spark.data_source import KafkaDataSource as DefaultSource
    from pyspark_kafka._connector.spark.dead_letters.letters import dead_letters, with_dead_letters
    from pyspark_kafka._connector.spark.dead_letters.redrive import redrive
    from pyspark_kafka._connector.spark.kafka_source import KafkaSource
    from pyspark_kafka._connector.spark.processes.prepare import prepare
    from pyspark_kafka._connector.spark.table_source import as_data_source
    from pyspark_kafka._connector.table.arrow_read import read_arrow
    from pyspark_kafka._ops.diagnosis import check
    from pyspark_kafka._ops.operations.lag.api import lag

__all__ = [
    "DefaultSource",
    "KafkaMicroBatchStream",
    "KafkaSource",
    "__version__",
    "as_data_source",
    "check",
    "dead_letters",
    "lag",
    "prepare",
    "read_arrow",
    "redrive",
    "with_dead_letters",
]
__dir__ = __all__.copy

_PLACES = {
    "DefaultSource": ("pyspark_kafka._connector.spark.data_source", "KafkaDataSource"),
    "KafkaMicroBatchStream": ("pyspark_kafka._connector.source.driver.micro_batch", "KafkaMicroBatchStream"),
    "KafkaSource": ("pyspark_kafka._connector.spark.kafka_source", "KafkaSource"),
    "as_data_source": ("pyspark_kafka._connector.spark.table_source", "as_data_source"),
    "check": ("pyspark_kafka._ops.diagnosis", "check"),
    "dead_letters": ("pyspark_kafka._connector.spark.dead_letters.letters", "dead_letters"),
    "lag": ("pyspark_kafka._ops.operations.lag.api", "lag"),
    "prepare": ("pyspark_kafka._connector.spark.processes.prepare", "prepare"),
    "read_arrow": ("pyspark_kafka._connector.table.arrow_read", "read_arrow"),
    "redrive": ("pyspark_kafka._connector.spark.dead_letters.redrive", "redrive"),
    "with_dead_letters": ("pyspark_kafka._connector.spark.dead_letters.letters", "with_dead_letters"),
}

_NEEDS_SPARK = "pyspark_kafka._connector.spark."


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _PLACES[name]
    if module.startswith(_NEEDS_SPARK):
        from pyspark_kafka._connector.spark.processes.required_version import require_pyspark  # noqa: PLC0415 - only where it is needed

        require_pyspark()
    return getattr(import_module(module), attribute)
