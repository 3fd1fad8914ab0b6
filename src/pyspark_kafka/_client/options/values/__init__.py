"""The resolved options of a query: frozen plain data that is pickled to executors.

Entry points: `BatchReadOptions` and `StreamReadOptions` (`read`), `WriteOptions` (`write`), which hold the others:
`connection`, `security` with `tls` and `tokens`, `formats`. A `secret` is never shown; `secret_sources` reads what its
reference names, when a connection is made, and `revealed` is its value in use.

Invariant: a default is declared here and nowhere else. `default_of` passes it to the catalogue, whose entries name
their fields as in `fetch.max_wait_ms`. No I/O but in `secret_sources`.
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
from pyspark_kafka._client.options.values.traces import TraceOptions
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
    "trace": TraceOptions,
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
