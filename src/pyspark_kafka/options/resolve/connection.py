"""What the options of a connection mean together. Layer: options.resolve."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka.options.resolve.security import resolve_security
from pyspark_kafka.options.values.connection import ConnectionOptions

if TYPE_CHECKING:
    from pyspark_kafka.options.resolve.collector import Collector

_SERVERS = "kafka.bootstrap.servers"


def resolve_connection(options: Collector) -> ConnectionOptions:
    """Return how to reach the cluster; problems go to the collector."""
    if not options.attempted(_SERVERS):
        options.report(
            "OPTION_MISSING",
            f"Option '{_SERVERS}' must be set: it says where the Kafka brokers are.",
            f'.option("{_SERVERS}", "host1:9092,host2:9092")',
            _SERVERS,
        )
    security = resolve_security(options)
    return ConnectionOptions(
        bootstrap_servers=options[_SERVERS] or (),
        client_id=options["kafka.client.id"],
        client_rack=options["kafka.client.rack"],
        request_timeout_ms=options["kafka.request.timeout.ms"],
        connect_timeout_ms=options["kafka.socket.connection.setup.timeout.ms"],
        api_timeout_ms=options["kafka.default.api.timeout.ms"],
        retry_backoff_ms=options["kafka.retry.backoff.ms"],
        # As in Java: a pause that is set above the usual maximum is kept.
        retry_backoff_max_ms=max(options["kafka.retry.backoff.max.ms"], options["kafka.retry.backoff.ms"]),
        metadata_max_age_ms=options["kafka.metadata.max.age.ms"],
        receive_buffer_bytes=options["kafka.receive.buffer.bytes"],
        send_buffer_bytes=options["kafka.send.buffer.bytes"],
        **security,
    )
