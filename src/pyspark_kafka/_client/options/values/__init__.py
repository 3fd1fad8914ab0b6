"""The options of a query once resolved: what the layers above work with.

Entry points: `BatchReadOptions`, `StreamReadOptions` and `WriteOptions`, which hold the others. Frozen plain data
that is pickled to executors; no I/O but what `Secret.reveal` reads.

Invariant: a default is declared here and nowhere else. `default_of` passes it to the catalogue, whose entries name
their fields as in `fetch.max_wait_ms`. Layer: options.values, the lowest of options.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from pyspark_kafka._client.options.values.connection import ConnectionOptions
from pyspark_kafka._client.options.values.formats import (
    FormatOptions,
    RegistryOptions,
    TypedReadOptions,
    TypedWriteOptions,
)
from pyspark_kafka._client.options.values.read import (
    BatchReadOptions,
    FetchOptions,
    ReadOptions,
    StreamReadOptions,
    Subscription,
)
from pyspark_kafka._client.options.values.tls import TlsOptions
from pyspark_kafka._client.options.values.write import ExactlyOnceOptions, ProducerOptions, WriteOptions

# The first part of a field's name, and the class that has the field. `read` is both kinds of read.
VALUE_CLASSES: dict[str, type] = {
    "connection": ConnectionOptions,
    "tls": TlsOptions,
    "subscription": Subscription,
    "fetch": FetchOptions,
    "read": ReadOptions,
    "batch_read": BatchReadOptions,
    "stream_read": StreamReadOptions,
    "producer": ProducerOptions,
    "write": WriteOptions,
    "exactly_once": ExactlyOnceOptions,
    "format": FormatOptions,
    "registry": RegistryOptions,
    "typed_read": TypedReadOptions,
    "typed_write": TypedWriteOptions,
}


def default_of(field: str) -> Any:
    """Return the default of a field such as `fetch.max_wait_ms`; None if it has none.

    Raises:
        ValueError: there is no such field.
    """
    section, _, name = field.partition(".")
    for declared in fields(VALUE_CLASSES[section]) if section in VALUE_CLASSES else ():
        if declared.name == name:
            return None if declared.default is MISSING else declared.default
    raise ValueError(f"no value class has a field '{field}'")
