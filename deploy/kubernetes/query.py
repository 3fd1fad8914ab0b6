"""A stream from Kafka to Kafka, exactly once. Its login is in the files of a secret that Kubernetes mounts."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

MOUNTED = "/mnt/kafka"


def kafka_options(servers: str) -> dict[str, str]:
    """Return the options of the connection."""
    return {
        "kafka.bootstrap.servers": servers,
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        # References: driver and executors read the files, and no plan, setting or log has the secrets.
        "kafka.sasl.jaas.config": f"file:{MOUNTED}/sasl.jaas.config",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": f"{MOUNTED}/ca.crt",
    }


def main(servers: str, source: str, target: str, checkpoint: str, group: str = "") -> None:
    """Run the query until it is stopped; with a group, until it has read what is there."""
    kafka = kafka_options(servers)
    spark = SparkSession.builder.getOrCreate()
    read = spark.readStream.format("pyspark_kafka").options(**kafka, subscribe=source)
    if group:
        read = read.options(startingOffsets="earliest", commitOffsetsToGroup=group)
    write = (
        read.load()
        .select("key", "value")
        .writeStream.format("pyspark_kafka")
        .options(**kafka, topic=target, deliveryGuarantee="exactly_once", checkpointLocation=checkpoint)
    )
    query = (write.trigger(availableNow=True) if group else write).start()
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
