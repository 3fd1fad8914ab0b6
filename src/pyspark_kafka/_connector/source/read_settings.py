"""The settings that all readers of a read share. Plain data, pickled in the readers' factory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Self

    from pyspark_kafka._client.options import (
        BatchReadOptions,
        ConnectionOptions,
        FetchOptions,
        StreamReadOptions,
        TraceOptions,
    )
    from pyspark_kafka._typed.typed.read_formats import ReadFormats


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """The fetch and decode settings of a read's readers. Connections are opened where they are used.

    Attributes:
        connection: the options of the cluster.
        fetch: sizes, waits and isolation of the fetch requests.
        schema: the exact Arrow schema of returned batches.
        fail_on_data_loss: whether lost records are an error, or are skipped with a warning.
        leaves_recreated: whether a recreated topic is left to a later plan, which reads it from its beginning. If not,
            and if loss is tolerated, a task continues in it at the same offset.
        formats: the formats of the keys and values in the schema; None: bytes.
        trace: the spans of the read; None: it has none.
        topic: the only topic of the read, for spans; empty: it has several.
    """

    connection: ConnectionOptions
    fetch: FetchOptions
    schema: pa.Schema
    fail_on_data_loss: bool
    leaves_recreated: bool = False
    formats: ReadFormats | None = None
    trace: TraceOptions | None = None
    topic: str = ""

    @classmethod
    def of_read(
        cls,
        options: BatchReadOptions | StreamReadOptions,
        schema: pa.Schema,
        formats: ReadFormats | None,
        *,
        leaves_recreated: bool = False,
    ) -> Self:
        """Return the settings of a read with these options; for the others see the class."""
        return cls(
            options.connection,
            options.fetch,
            schema,
            options.fail_on_data_loss,
            leaves_recreated,
            formats,
            options.trace,
            options.subscription.only_topic or "",
        )

    def knowing(self, servers: tuple[tuple[str, int], ...]) -> Self:
        """Return these settings with the addresses of brokers that the driver has learned."""
        return replace(self, connection=replace(self.connection, learned_servers=servers)) if servers else self
