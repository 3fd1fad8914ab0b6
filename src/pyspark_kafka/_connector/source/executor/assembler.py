"""The assemblers of Arrow batches: for bytes, or for typed keys and values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pyspark_kafka._client.client.net.buffers import keep_freed_memory
from pyspark_kafka._connector.source.executor.columns import BatchAssembler

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._connector.source.executor.typed_columns import TypedBatches
    from pyspark_kafka._typed.typed.read_formats import ReadFormats
    from pyspark_kafka.records import Decoded


class Assembler(Protocol):
    """A builder for batches of one topic-partition's records."""

    @property
    def decoded_columns(self) -> Sequence[str]:
        """The columns that the codec must decode for it."""
        ...

    def assemble(self, decoded: Decoded) -> pa.RecordBatch:
        """Return a batch of decoded records; it may have fewer rows than records, or none."""
        ...


class Assemblers:
    """The assemblers of one reader. Without typed columns, a batch is only assembled.

    Runs on: executor, one for a reader.

    Args:
        schema: the exact Arrow schema of the batches.
        formats: the formats of keys and values; None: bytes.

    Raises:
        MissingDependencyError, SchemaError: as `TypedBatches`.
    """

    def __init__(self, schema: pa.Schema, formats: ReadFormats | None) -> None:
        keep_freed_memory()
        self._schema = schema
        self._assemblers: dict[TopicPartition, Assembler] = {}
        self._typed: TypedBatches | None = None
        if formats is not None:
            # Reads of bytes load no decoders.
            from pyspark_kafka._connector.source.executor.typed_columns import TypedBatches  # noqa: PLC0415

            self._typed = TypedBatches(schema, formats)

    def assembler(self, topic_partition: TopicPartition) -> Assembler:
        """Return the assembler of a topic-partition."""
        known = self._assemblers.get(topic_partition)
        if known is None:
            typed = self._typed
            known = BatchAssembler(topic_partition, self._schema) if typed is None else typed.assembler(topic_partition)
            self._assemblers[topic_partition] = known
        return known

    def finish(self) -> None:
        """Check the share of bad records, after the reader has read everything.

        Raises:
            RecordError: too many records are bad.
        """
        if self._typed is not None:
            self._typed.finish()

    def close(self) -> None:
        """Log what is not logged yet."""
        if self._typed is not None:
            self._typed.close()
