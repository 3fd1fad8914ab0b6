"""One write to Kafka, as a plan: the columns of its rows, and how it runs in each kind of query."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_kafka._client.options import parse_write_options
from pyspark_kafka._connector.sink.columns import Column, SinkColumns, find_sink_columns
from pyspark_kafka.connector import BatchWrite, LogicalWriteInfo, StreamingWrite, SupportsTruncate, Write
from pyspark_kafka.connector.columns import type_name
from pyspark_kafka.errors import CapabilityError, OptionError
from pyspark_kafka.records import codec_info

if TYPE_CHECKING:
    from pyspark_kafka._client.options import WriteOptions
    from pyspark_kafka._connector.sink.driver.write_schemas import PendingSchemas
    from pyspark_kafka.connector import ContinuousStream


class KafkaWriteBuilder(SupportsTruncate):
    """Builds the write of one batch query or of one micro-batch.

    Runs on: driver; used once.

    Source: Spark `org.apache.spark.sql.kafka010.KafkaSourceProvider.KafkaTable.newWriteBuilder`.
    """

    def __init__(self, info: LogicalWriteInfo) -> None:
        self._info = info

    def truncate(self) -> KafkaWriteBuilder:
        """Return the builder: complete mode appends its whole result at each trigger, as in Spark's connector."""
        return self

    def build(self) -> KafkaWrite:
        """Return the write."""
        return KafkaWrite(self._info)


class KafkaWrite(Write):
    """A write of rows with the columns `value`, `key`, `topic`, `partition` and `headers`; others have no effect.

    Runs on: driver; methods open no connection, but one to a schema registry, which they wait for: its schemas are
    found and checked before any row is written.

    Raises:
        OptionError: from `toBatch`, `toStreaming`, `toContinuous`: options are missing, unknown, malformed or in
            conflict.
        SchemaError: from the same: a needed column is missing, or a column has a type that cannot be written, or does
            not fit its schema; or there is no such schema.
        RegistryError: from the same: the schema registry does not respond.

    Source: Spark `org.apache.spark.sql.kafka010.KafkaWrite`.
    """

    def __init__(self, info: LogicalWriteInfo) -> None:
        self._info = info
        self._notes: tuple[str, ...] = ()
        self._schemas: PendingSchemas | None = None

    def notes(self) -> tuple[str, ...]:
        """Return the options without effect, and a slow codec."""
        return (*self._notes, *codec_info().notes)

    def toBatch(self) -> BatchWrite:
        """Return this write for a batch query: at least once, or exactly once by option `deliveryGuarantee`."""
        options = self._options(streaming=False)
        if options.trace is None:
            return self._batch(options)
        from pyspark_kafka._connector.table.traced_writes import traced_batch_write  # noqa: PLC0415 - few writes have spans

        return traced_batch_write(options, options.trace, self._batch)

    def _batch(self, options: WriteOptions) -> BatchWrite:
        columns = self._columns(options, streaming=False)
        if options.exactly_once is not None:
            from pyspark_kafka._connector.sink.driver.exactly_once import KafkaExactlyOnceBatchWrite  # noqa: PLC0415 - one of two

            return KafkaExactlyOnceBatchWrite(options, options.exactly_once, columns)
        from pyspark_kafka._connector.sink.driver.at_least_once import KafkaBatchWrite  # noqa: PLC0415 - one of two

        return KafkaBatchWrite(options, columns)

    def toStreaming(self) -> StreamingWrite:
        """Return this write for a streaming query: at least once, or exactly once by option `deliveryGuarantee`."""
        options = self._options(streaming=True)
        job = self._streaming(options)
        if options.trace is None:
            return job
        from pyspark_kafka._connector.table.traced_writes import TracedStreamingWrite  # noqa: PLC0415 - as above

        return TracedStreamingWrite(job, options.trace, options.topic or "")

    def _streaming(self, options: WriteOptions) -> StreamingWrite:
        columns = self._columns(options, streaming=True)
        if options.exactly_once is not None and options.exactly_once.commit == "tasks":
            from pyspark_kafka._connector.sink.driver.tasks.exactly_once import (  # noqa: PLC0415 - as above
                KafkaTaskCommitStreamingWrite,
            )

            return KafkaTaskCommitStreamingWrite(options, options.exactly_once, columns, self._schemas)
        if options.exactly_once is not None:
            from pyspark_kafka._connector.sink.driver.exactly_once import KafkaExactlyOnceStreamingWrite  # noqa: PLC0415 - as above

            return KafkaExactlyOnceStreamingWrite(options, options.exactly_once, columns, self._schemas)
        from pyspark_kafka._connector.sink.driver.at_least_once import KafkaStreamingWrite  # noqa: PLC0415 - as above

        return KafkaStreamingWrite(options, columns, self._schemas)

    def toContinuous(self, stream: ContinuousStream, epoch_ms: int) -> StreamingWrite:
        """Return this write for a continuous query: at least once, or exactly once if it reads Kafka as well.

        Raises:
            CapabilityError: exactly once, and another source.
            OptionError: as from `toStreaming`; or an epoch does not fit in a transaction; or `identityHeaders` is set.
        """
        options = self._options(streaming=True)
        if options.exactly_once is None:
            if options.identity_headers:
                raise OptionError(
                    "Option 'identityHeaders' has no meaning in a continuous query: an epoch that runs again after a "
                    "failure has other rows under the same numbers, and readers would drop them. Nothing was read.",
                    condition="OPTION_NOT_APPLICABLE",
                    hint="Remove the option, and put an id into the rows, or use deliveryGuarantee=exactly_once.",
                )
            return self.toStreaming()
        from pyspark_kafka._connector.sink.driver.transactional import KafkaTransactionalWrite  # noqa: PLC0415 - as above
        from pyspark_kafka._connector.source.driver.continuous import KafkaContinuousStream  # noqa: PLC0415 - as above

        if not isinstance(stream, KafkaContinuousStream) or self._info.queryId is None:
            raise CapabilityError(
                f"A continuous query writes to Kafka exactly once only what it reads from Kafka, not from {stream!r}: "
                "positions of other sources cannot be part of a transaction. Nothing was read.",
                condition="EXACTLY_ONCE_OTHER_SOURCE",
                hint="Use deliveryGuarantee=at_least_once, or a micro-batch query, which is exactly once with any "
                "source.",
            )
        if stream.committedGroup is not None:
            raise OptionError(
                "Option 'commitOffsetsToGroup' has no place in an exactly-once continuous query: its transactions "
                "commit the positions of the source to a consumer group already. Nothing was read.",
                condition="OPTION_CONFLICT",
                hint="Remove 'commitOffsetsToGroup'; option 'offsetsGroupId' of the writer names the group.",
                parameters={"options": "commitOffsetsToGroup, deliveryGuarantee"},
            )
        columns = self._columns(options, streaming=True)
        return KafkaTransactionalWrite(
            options,
            options.exactly_once,
            columns,
            query_id=self._info.queryId,
            source=stream.connection,
            epoch_ms=epoch_ms,
            schemas=self._schemas,
        )

    def _options(self, *, streaming: bool) -> WriteOptions:
        options = parse_write_options(self._info.options, streaming=streaming)
        self._notes = options.notes
        return options

    def _columns(self, options: WriteOptions, *, streaming: bool) -> SinkColumns:
        fields = {field.name: field.type for field in self._info.schema}
        columns = [Column(field.name, field.type, type_name(field)) for field in self._info.schema]
        if options.typed is None:
            return find_sink_columns(columns, topic_option=options.topic)
        from pyspark_kafka._connector.sink.driver.write_schemas import plan_formats  # noqa: PLC0415 - most writes have no format
        from pyspark_kafka._typed.typed.write_formats import typed_columns  # noqa: PLC0415 - as above

        typed = typed_columns(options.typed)
        found = find_sink_columns(columns, topic_option=options.topic, typed=typed)
        planned = plan_formats(
            options,
            options.typed,
            {side: fields[side] for side in typed},
            streaming=streaming,
            query_id=self._info.queryId,
        )
        self._schemas = planned.schemas
        return replace(found, key_format=planned.formats.key, value_format=planned.formats.value)
