"""Topics as datasets, made of the options of reads and writes. Pure: nothing that an option names is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_kafka._client.options import TypedReadOptions, parse_read_options, parse_write_options
from pyspark_kafka._ops.lineage.values import DatasetColumn, RegistrySubject, TopicDataset
from pyspark_kafka._typed.typed.read_formats import default_subject

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark_kafka._client.options import (
        ConnectionOptions,
        FormatOptions,
        RegistryOptions,
        TypedWriteOptions,
    )

_SIDES = ("key", "value")
_WITH_SCHEMA = ("json", "avro", "protobuf")


def read_datasets(
    options: Mapping[str, str], columns: Sequence[DatasetColumn], topics: Iterable[str] = ()
) -> tuple[TopicDataset, ...]:
    """Return the topics of a read.

    Args:
        options: of the read, as the user set them.
        columns: of the read.
        topics: the topics that it is known to read; needed for a pattern only.

    Raises:
        OptionError: the options are not valid.
    """
    parsed = parse_read_options(options)
    subscription = parsed.subscription
    named = {*topics, *subscription.topics, *(each.topic for each in subscription.topic_partitions)}
    return tuple(_dataset(parsed.connection, topic, columns, parsed.typed) for topic in sorted(named))


def write_datasets(
    options: Mapping[str, str], columns: Sequence[DatasetColumn], topics: Iterable[str] = (), *, streaming: bool
) -> tuple[TopicDataset, ...]:
    """Return the topics of a write.

    Args:
        options: of the write, as the user set them.
        columns: of the rows.
        topics: the topics that rows name, as far as they are known; without effect if an option names the topic.
        streaming: whether the query is a stream.

    Raises:
        OptionError: the options are not valid.
    """
    parsed = parse_write_options(options, streaming=streaming)
    named = topics if parsed.topic is None else (parsed.topic,)
    return tuple(_dataset(parsed.connection, topic, columns, parsed.typed) for topic in sorted({*named}))


def columns_of(schema: Mapping[str, Any]) -> tuple[DatasetColumn, ...]:
    """Return the columns of a schema.

    Args:
        schema: `StructType.jsonValue()`.
    """
    return tuple(_column(field["name"], field["type"]) for field in schema["fields"])


def _column(name: str, kind: str | Mapping[str, Any]) -> DatasetColumn:
    """Return a column; parts of maps and arrays are named as OpenLineage's agent for Spark names them."""
    if isinstance(kind, str):
        return DatasetColumn(name, kind)
    parts: list[tuple[str, Any]] = []
    if kind["type"] == "struct":
        parts = [(field["name"], field["type"]) for field in kind["fields"]]
    elif kind["type"] == "map":
        parts = [("key", kind["keyType"]), ("value", kind["valueType"])]
    elif kind["type"] == "array":
        parts = [("_element", kind["elementType"])]
    return DatasetColumn(name, kind["type"], tuple(_column(*part) for part in parts))


def _dataset(
    connection: ConnectionOptions,
    topic: str,
    columns: Sequence[DatasetColumn],
    typed: TypedReadOptions | TypedWriteOptions | None,
) -> TopicDataset:
    host, port = connection.bootstrap_servers[0]
    shown = f"[{host}]" if ":" in host else host
    subjects = () if typed is None else tuple(_subjects(typed, topic))
    return TopicDataset(f"kafka://{shown}:{port}", topic, tuple(columns), subjects)


def _subjects(typed: TypedReadOptions | TypedWriteOptions, topic: str) -> Iterable[RegistrySubject]:
    for name in _SIDES:
        side: FormatOptions = getattr(typed, name)
        registry: RegistryOptions | None = typed.registry
        # A read with a schema of the user looks up no subject; a write does.
        own = side.schema is not None and isinstance(typed, TypedReadOptions)
        if registry is not None and side.format in _WITH_SCHEMA and not own:
            yield RegistrySubject(name, side.subject or default_subject(name, topic, registry), side.schema_version)
