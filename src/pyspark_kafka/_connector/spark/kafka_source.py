"""`KafkaSource`: Spark's first streaming source interface, for jobs that drive their own batches.

`KafkaMicroBatchStream` plans the ranges of a batch. This class adds an interface for programs: offsets in any form,
initial offsets kept in the directory of a checkpoint, a batch as a DataFrame.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka._client.options import OPTIONS, Scope, parse_stream_read_options
from pyspark_kafka._connector.source.driver.micro_batch import KafkaMicroBatchStream
from pyspark_kafka._connector.source.input_partition import KafkaInputPartition
from pyspark_kafka._connector.source.read_columns import plan_columns, reader_schemas
from pyspark_kafka._connector.spark.compat import from_spark_limit, spark_schema
from pyspark_kafka._connector.spark.processes.python_choice import warn_without_package, without_package
from pyspark_kafka.checkpoint.files import CheckpointFiles
from pyspark_kafka.checkpoint.initial_offset_log import InitialOffsetLog
from pyspark_kafka.connector import ReadLimit
from pyspark_kafka.errors import CheckpointError, OptionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from pyspark_kafka._base.model import OffsetRange
    from pyspark_kafka._client.options import StreamReadOptions

_LOG = logging.getLogger(__name__)

OffsetLike: TypeAlias = KafkaSourceOffset | Mapping[str, Any] | str
"""An offset in any form: a `KafkaSourceOffset`, the nested mapping `{"topic": {"0": 100}}`, or its JSON."""

# The planned ranges replace these options.
_PLANNED = ("subscribe", "subscribePattern", "assign")
_PLANNED_PREFIXES = ("starting", "ending")


class KafkaSource:
    """A Kafka subscription from which a program takes its batches itself.

    For jobs with their own loop or schedule (Airflow, notebooks), and to read a past batch again. The program keeps the
    offsets; a batch is an ordinary DataFrame, and reads the same records each time that it is used.

    ```python
    source = KafkaSource(spark, {"kafka.bootstrap.servers": "…", "subscribe": "events"}, "/checkpoints/job/sources/0")
    end = source.latestOffset(start)  # start: the end of the previous batch, None at first
    source.getBatch(start, end).write.mode("append").parquet("…")
    ```

    Runs on: driver, in one thread. This process looks offsets up, and must reach the brokers, also if it is a Spark
    Connect client.

    Args:
        spark: the session, classic or Spark Connect.
        options: the options of `spark.readStream.format("pyspark_kafka")`.
        metadata_path: the source's own directory, `<checkpoint>/sources/<index>`, where the initial offsets are kept.
            They are resolved once; in a later run they take precedence over the starting options. None: below the
            location in option `checkpointLocation`, or in memory only without that option. The directory also keeps
            the version of a registry's schema with which keys or values are read.

    Raises:
        OptionError: options are missing, unknown, malformed or in conflict.
        SchemaError, RegistryError, CheckpointError, MissingDependencyError: keys or values have a format; see
            `plan_columns`.

    Source: Spark `KafkaSource`.
    """

    def __init__(self, spark: SparkSession, options: Mapping[str, Any], metadata_path: str | None = None) -> None:
        parsed = parse_stream_read_options(options)
        for note in parsed.notes:
            _LOG.warning(note)
        warn_without_package(spark)
        self._spark = spark
        self._raw = dict(options)
        self._initial_log = _initial_log(parsed, metadata_path)
        # Where the batch is read, its options split it; and its initial offsets are kept here.
        self._options = replace(parsed, min_partitions=None, max_records_per_partition=None, checkpoint_location=None)
        self._columns = plan_columns(parsed, starts=True, directory=metadata_path)
        if self._columns.versions is not None:
            self._columns.versions.keep()
        # A program may look for an end from any offset; `commit` marks the finished offsets.
        self._stream = KafkaMicroBatchStream(
            self._options, self._columns.schema, self._columns.formats, starts_are_finished=False
        )
        self._initial: KafkaSourceOffset | None = None
        self._position: KafkaSourceOffset | None = None

    def __repr__(self) -> str:
        return f"KafkaSourceV1[{self._options.subscription.describe()}]"

    def schema(self) -> StructType:
        """Return the columns of every batch."""
        return spark_schema(self._columns.schema)

    def initialOffset(self) -> KafkaSourceOffset:
        """Return the start of the first batch. The first call resolves the starting option, and keeps the result.

        Raises:
            OptionError: the option names other partitions than the subscription, or a time without a record.
            CheckpointError: the kept offsets cannot be read or written.
        """
        if self._initial is None:
            log = self._initial_log
            found = self._resolve_initial() if log is None else log.get_or_create(self._resolve_initial)
            self._initial = KafkaSourceOffset(found.partitions)
        return self._initial

    def getOffset(self) -> KafkaSourceOffset | None:
        """Return the end of the batch that follows the last one that `getBatch` returned, or of the first one.

        As `latestOffset` with the limit in the options. Spark's connector has only `latestOffset`.
        """
        return self.latestOffset(self._position)

    def latestOffset(self, start: OffsetLike | None = None, limit: Any = None) -> KafkaSourceOffset | None:
        """Return the end of the batch that begins at `start`; `start` itself if there is nothing to read.

        Args:
            start: the end of the previous batch; None: the initial offsets.
            limit: the maximum to read, a `ReadLimit` of this package or of PySpark; None: the limit in the options.

        Returns:
            None if there are no partitions at all.

        Raises:
            CheckpointError: `start` is not an offset of a Kafka source.
            DataLossError: as `KafkaMicroBatchStream.latestOffset`; nothing that a program has saved is changed.
        """
        begin = self.initialOffset() if start is None else _offset(start)
        if limit is None:
            limit = self.getDefaultReadLimit()
        elif not isinstance(limit, ReadLimit):
            limit = from_spark_limit(limit)
        end = self._stream.latestOffset(begin, limit)
        return end if end.partitions else None

    def reportLatestOffset(self) -> KafkaSourceOffset | None:
        """Return the ends of the partitions from the last `latestOffset`; None before the first call."""
        return self._stream.reportLatestOffset()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit in the options: the maximum that a batch reads."""
        return self._stream.getDefaultReadLimit()

    def prepareForTriggerAvailableNow(self) -> None:
        """End at the records available at the next `latestOffset` call: later calls return nothing newer."""
        self._stream.prepareForTriggerAvailableNow()

    def getBatch(self, start: OffsetLike | None, end: OffsetLike) -> DataFrame:
        """Return the records of `[start, end)`.

        It is planned like a micro-batch: partitions that are only in `end` are read from their earliest offset; deleted
        partitions and partitions whose end went back are data loss. Records are read when the DataFrame is used; a
        topic recreated before that is not recognized.

        Args:
            start: inclusive; None: the start of the first batch, which `end` may carry, else the initial offsets. With
                a start, the kept offsets are not used.
            end: exclusive.

        Raises:
            CheckpointError: an offset is not from a Kafka source.
            DataLossError: partitions were deleted, or went back, and `failOnDataLoss` is true.
            PlanningError: the batch does not fit the snapshot of an available-now run.
            SetupError: the Python that Spark starts does not have this package; with Spark Connect the first action
                raises Spark's error.

        Shape: the columns of `schema()`; no rows if the range has none.
        """
        last = _offset(end)
        if start is not None:
            first = _offset(start)
        else:
            first = self.initialOffset() if last.starts is None else KafkaSourceOffset(last.starts)
        planned = self._stream.planInputPartitions(first, last)
        ranges = [
            offset_range
            for partition in planned
            if isinstance(partition, KafkaInputPartition)
            for offset_range in (partition.offset_range, *partition.further_ranges)
        ]
        self._position = KafkaSourceOffset(last.partitions)
        if not ranges:
            return self._spark.createDataFrame([], self.schema())
        options = _batch_options(self._raw, ranges)
        if self._columns.formats is not None:
            # The schemas of this source, whatever the registry has by now.
            for side, schema in reader_schemas(self._columns.formats).items():
                options |= {f"{side}Subject": schema.subject, f"{side}SchemaVersion": schema.version}
        try:
            # A Connect client sends no request before the first action, and raises only then.
            return self._spark.read.format("pyspark_kafka").options(**options).load()
        except Exception as error:
            # A class of PySpark's in some versions, the JVM's error as it is in others; the text is the same.
            if "[DATA_SOURCE_NOT_FOUND]" not in str(error):
                raise
            raise without_package() from None

    def deserializeOffset(self, text: str) -> KafkaSourceOffset:
        """Parse an offset from a checkpoint of this connector or of Spark's.

        Raises:
            CheckpointError: the text is not an offset of a Kafka source.
        """
        return KafkaSourceOffset.from_json(text)

    def commit(self, end: OffsetLike) -> None:
        """Record that everything below `end` is processed.

        With option `commitOffsetsToGroup`, it is committed to a group for Kafka's own tools, without waiting; without
        the option nothing is done.

        Raises:
            CheckpointError: `end` is not an offset of a Kafka source.
        """
        self._stream.commit(_offset(end))

    def stop(self) -> None:
        """Release what the source holds. Batches that it has returned can still be read.

        With option `commitOffsetsToGroup`, blocks for at most about 2 s, until the last `commit` has reached the group.
        """
        self._stream.stop()

    def _resolve_initial(self) -> KafkaSourceOffset:
        # With another stream: one that has resolved a start puts it into the end of its first batch.
        return KafkaSourceOffset(
            KafkaMicroBatchStream(self._options, self._columns.schema, self._columns.formats).resolve_start()
        )


def _initial_log(options: StreamReadOptions, metadata_path: str | None) -> InitialOffsetLog | None:
    if metadata_path is None:
        if options.checkpoint_location is None:
            return None
        return InitialOffsetLog(CheckpointFiles(options.checkpoint_location), f"sources/{options.source_index}")
    if options.checkpoint_location is not None:
        raise OptionError(
            "Option 'checkpointLocation' and argument metadata_path are both given; one of them names the place of the "
            "initial offsets. Nothing was done.",
            condition="OPTION_CONFLICT",
            hint="Remove 'checkpointLocation'.",
            parameters={"options": "checkpointLocation"},
        )
    return InitialOffsetLog(CheckpointFiles(metadata_path), "")


def _offset(given: OffsetLike) -> KafkaSourceOffset:
    if isinstance(given, KafkaSourceOffset):
        return given
    if isinstance(given, str):
        return KafkaSourceOffset.from_json(given)
    if isinstance(given, Mapping):
        return KafkaSourceOffset.from_dict(given)
    raise CheckpointError(
        f"Expected an offset of a Kafka source, got {given!r}.",
        condition="CHECKPOINT_OFFSET_INVALID",
        hint='Use a KafkaSourceOffset, a mapping such as {"events": {"0": 100}}, or its JSON.',
    )


def _batch_options(raw: Mapping[str, Any], ranges: list[OffsetRange]) -> dict[str, Any]:
    """Return the options of a batch read of exactly these ranges, with the options of the stream that apply to it."""
    options = {}
    for name, value in raw.items():
        option = OPTIONS.get(name.strip().lower())
        if option is None or Scope.BATCH_READ not in option.scopes:
            continue
        if option.name not in _PLANNED and not option.name.startswith(_PLANNED_PREFIXES):
            options[option.name] = value
    # The partitions as `KafkaSourceOffset` writes them, but lists.
    starts = KafkaSourceOffset({each.topic_partition: each.start_offset for each in ranges})
    ends = KafkaSourceOffset({each.topic_partition: each.end_offset for each in ranges})
    assigned = {topic: [int(number) for number in offsets] for topic, offsets in starts.to_dict().items()}
    return {
        **options,
        "assign": json.dumps(assigned),
        "startingOffsets": starts.json(),
        "endingOffsets": ends.json(),
    }
