"""Every option declared once, parsed once on the driver into frozen values. Nothing below options/ sees strings.

The only import path of the other packages: what is below is the room's own. In order, each importing only what stands
before it:

- `values`: what a query's options are once resolved; frozen, picklable.
- `parse`: one text to one value.
- `catalogue`: the table of all options: name, text, parser, field, comparison with Spark's connector.
- `resolve`: all options of a query together, to values. `parse_read_options`, `parse_write_options` and the like start
  here.

`page` renders the catalogue as `docs/options.md`.

Invariant: a default and a name stand once; no I/O, no Spark, no Kafka client. Layer: above offsets and model.
"""

from pyspark_kafka.options.catalogue import OPTIONS
from pyspark_kafka.options.catalogue.option import EVERYWHERE, Scope
from pyspark_kafka.options.parse.times import duration_ms
from pyspark_kafka.options.resolve.read import parse_batch_read_options, parse_read_options, parse_stream_read_options
from pyspark_kafka.options.resolve.write import parse_write_options
from pyspark_kafka.options.values.connection import ConnectionOptions
from pyspark_kafka.options.values.fetch import FetchOptions
from pyspark_kafka.options.values.producer import ProducerOptions
from pyspark_kafka.options.values.read import BatchReadOptions, StreamReadOptions, Subscription
from pyspark_kafka.options.values.secret import Secret
from pyspark_kafka.options.values.write import ExactlyOnceOptions, WriteOptions

__all__ = [
    "EVERYWHERE",
    "OPTIONS",
    "BatchReadOptions",
    "ConnectionOptions",
    "ExactlyOnceOptions",
    "FetchOptions",
    "ProducerOptions",
    "Scope",
    "Secret",
    "StreamReadOptions",
    "Subscription",
    "WriteOptions",
    "duration_ms",
    "parse_batch_read_options",
    "parse_read_options",
    "parse_stream_read_options",
    "parse_write_options",
]
