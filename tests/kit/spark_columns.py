"""What reads and writes values of a schema with the columns that Spark has, without Spark."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from pyspark_kafka._client.options import FormatOptions
from pyspark_kafka._connector.spark.compat import arrow_schema, spark_schema
from pyspark_kafka._typed.codecs.column_decoder import ColumnDecoder
from pyspark_kafka._typed.codecs.column_encoder import ColumnEncoder
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema
from pyspark_kafka._typed.typed.column_formats import column_of_schema
from pyspark_kafka._typed.typed.write_formats import writable_type


class SparkCodec(NamedTuple):
    """Reads values as a task does, and writes the columns of that read as a task does that has them from Spark."""

    decoder: ColumnDecoder
    encoder: ColumnEncoder


def codec_of_spark(options: FormatOptions, schema: RegisteredSchema) -> SparkCodec:
    """Return what tasks have of a schema after its way through the driver: of the types that a column has in Spark."""
    column = pickle.loads(pickle.dumps(column_of_schema("value", options, schema)))  # noqa: S301
    given = spark_schema(pa.schema([pa.field("value", column.arrow_type)]))
    of_spark = writable_type(arrow_schema(given).field("value").type)
    return SparkCodec(ColumnDecoder(column, None), ColumnEncoder(replace(column, arrow_type=of_spark)))
