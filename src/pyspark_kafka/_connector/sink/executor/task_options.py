"""The options of one writing task: whether it waits an outage out, or fails as at first contact."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.waiting.stalls import contact_of

if TYPE_CHECKING:
    from pyspark_kafka._client.options import WriteOptions


def options_of_task(options: WriteOptions, epoch_id: int) -> WriteOptions:
    """Return the options that one task writes with.

    The first micro-batch of a query, in a process that has not heard of the cluster yet, is first contact. Every other
    task of a stream waits an outage out.

    Args:
        options: of the write.
        epoch_id: the number of the micro-batch.
    """
    if not options.outage_timeout_ms:
        return options
    if epoch_id <= 0 and not contact_of(options.connection.bootstrap_servers).known:
        return replace(options, outage_timeout_ms=0)
    producer = replace(options.producer, delivery_timeout_ms=options.patient_delivery_timeout_ms)
    return replace(options, producer=producer)
