"""The combined meaning of a connection's options."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_kafka._client.options.resolve.security import resolve_security
from pyspark_kafka._client.options.values.connection import ConnectionOptions

if TYPE_CHECKING:
    from pyspark_kafka._client.options.catalogue.parsed import Parsed, Problems

_SERVERS = "kafka.bootstrap.servers"
_METADATA_AGE, _PARTITIONS_AGE = "kafka.metadata.max.age.ms", "partition.metadata.cache.ttl.ms"
_OF_TABLES = (
    " If this is a table of SQL: Spark does not pass the options of a table to its queries. Create a view instead: "
    "CREATE TEMPORARY VIEW … USING pyspark_kafka OPTIONS (…)."
)


def resolve_connection(options: Parsed, problems: Problems) -> ConnectionOptions:
    """Return how to reach the cluster."""
    if not options.attempted(_SERVERS):
        hint = f'Set it: .option("{_SERVERS}", "host1:9092,host2:9092").{"" if options.names else _OF_TABLES}'
        problems.missing(_SERVERS, "must be set: it says where the Kafka brokers are", hint)
    security = resolve_security(options, problems)
    # Without servers there is a problem, and the value is never used.
    connection = ConnectionOptions(**{"bootstrap_servers": (), **options.fields("connection"), **security})
    age_ms = options[_PARTITIONS_AGE]
    if options.given(_PARTITIONS_AGE) and age_ms > 0 and not options.attempted(_METADATA_AGE):
        connection = replace(connection, metadata_max_age_ms=age_ms)
    # As in Java: an initial delay above the default maximum is kept.
    return replace(connection, retry_backoff_max_ms=max(connection.retry_backoff_max_ms, connection.retry_backoff_ms))
