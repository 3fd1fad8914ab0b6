"""Orders in Avro, with a schema registry: sums by country, written in Avro, and what cannot be read put aside.

    python examples/typed_orders.py localhost:9092 http://localhost:8081 /checkpoints/typed-orders

Reads topic `orders` with the latest schema of subject `orders-value`: fields `country`, `cents`, and `time`, which is a
timestamp. Sums of 10 minutes go to topic `revenue`, whose schema is registered if it is new. Records that cannot be
read go to topic `orders-dead-letters`, with headers that say where they came from and why. All topics must exist.

It ends when it has read what there is, and continues there when it is started again. To run for good, remove the
trigger.
"""

from __future__ import annotations

import argparse
import json

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import pyspark_kafka

REVENUE = {
    "type": "record",
    "name": "Revenue",
    "fields": [
        {"name": "country", "type": "string"},
        {"name": "start", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "orders", "type": "long"},
        {"name": "cents", "type": "long"},
    ],
}


def read_orders(spark: SparkSession, options: dict[str, str], topic: str, checkpoint: str) -> DataFrame:
    """Return the records of the topic: `value` is a struct, `_corrupt_record` holds those that cannot be read."""
    records = spark.readStream.format("pyspark_kafka").options(**options)
    records = records.options(subscribe=topic, startingOffsets="earliest", includeHeaders="true")
    # Beside the query's: the source keeps there which version of the schema it reads with.
    records = records.option("checkpointLocation", checkpoint)
    return records.options(valueFormat="avro", mode="PERMISSIVE").load()


def sum_by_country(records: DataFrame) -> DataFrame:
    """Return a key and a typed value for each country and 10 minutes."""
    orders = records.where("value IS NOT NULL").select("value.*").withWatermark("time", "10 minutes")
    sums = orders.groupBy(sf.window("time", "10 minutes").alias("window"), "country").agg(
        sf.count("*").alias("orders"), sf.sum("cents").alias("cents")
    )
    revenue = sf.struct("country", sf.col("window.start").alias("start"), "orders", "cents")
    return sums.select(sf.col("country").alias("key"), revenue.alias("value"))


def main() -> None:
    """Read the arguments, and run both queries to their end."""
    parser = argparse.ArgumentParser(description="Sum orders in Avro, and put aside what cannot be read.")
    parser.add_argument("servers", help="kafka.bootstrap.servers")
    parser.add_argument("registry", help="schema.registry.url")
    parser.add_argument("checkpoints", help="a folder for the checkpoints: a path or URI")
    parser.add_argument("--orders", default="orders", help="the topic to read")
    parser.add_argument("--revenue", default="revenue", help="the topic for the sums")
    parser.add_argument("--dead-letters", default="orders-dead-letters", help="the topic for what cannot be read")
    arguments = parser.parse_args()
    kafka = {"kafka.bootstrap.servers": arguments.servers}
    typed = {**kafka, "schema.registry.url": arguments.registry}

    pyspark_kafka.prepare()
    spark = SparkSession.builder.appName("typed orders").getOrCreate()

    checkpoint = f"{arguments.checkpoints}/revenue"
    sums = sum_by_country(read_orders(spark, typed, arguments.orders, checkpoint))
    write = sums.writeStream.format("pyspark_kafka").options(**typed).option("topic", arguments.revenue)
    write = write.options(valueFormat="avro", valueSchema=json.dumps(REVENUE), autoRegisterSchemas="true")
    revenue = write.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()

    checkpoint = f"{arguments.checkpoints}/dead-letters"
    records = read_orders(spark, typed, arguments.orders, checkpoint)
    letters = pyspark_kafka.dead_letters(records, topic=arguments.dead_letters)
    write = letters.writeStream.format("pyspark_kafka").options(**kafka)
    aside = write.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()

    for query in (revenue, aside):
        query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
