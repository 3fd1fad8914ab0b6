"""Every option declared once, parsed once on the driver into frozen values. Nothing below options/ sees strings.

Pure: no I/O, no Spark, no Kafka client. Layer: above offsets and model.
"""

from pyspark_kafka.options.connection import ConnectionOptions, FetchOptions, ProducerOptions, Secret
from pyspark_kafka.options.parsing import (
    parse_batch_read_options,
    parse_read_options,
    parse_stream_read_options,
    parse_write_options,
)
from pyspark_kafka.options.resolved import (
    BatchReadOptions,
    ExactlyOnceOptions,
    StreamReadOptions,
    Subscription,
    WriteOptions,
)

__all__ = [
    "BatchReadOptions",
    "ConnectionOptions",
    "ExactlyOnceOptions",
    "FetchOptions",
    "ProducerOptions",
    "Secret",
    "StreamReadOptions",
    "Subscription",
    "WriteOptions",
    "parse_batch_read_options",
    "parse_read_options",
    "parse_stream_read_options",
    "parse_write_options",
]
