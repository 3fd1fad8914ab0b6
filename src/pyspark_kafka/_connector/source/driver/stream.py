"""The common base of the micro-batch and the continuous stream: start, topics, finished records."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka._client.options import parse_stream_read_options
from pyspark_kafka._connector.source.driver.offset_reader import KafkaOffsetReader
from pyspark_kafka._connector.source.driver.reporting.finished import FinishedBatches
from pyspark_kafka._connector.source.driver.starting_position import StartingPosition
from pyspark_kafka._connector.source.driver.topic_losses import TopicLosses
from pyspark_kafka._connector.source.driver.topic_watch import TopicWatch
from pyspark_kafka._connector.source.read_columns import plan_columns, reader_schemas
from pyspark_kafka.checkpoint.files import CheckpointFiles
from pyspark_kafka.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa
    from typing_extensions import Self

    from pyspark_kafka._client.options import StreamReadOptions
    from pyspark_kafka._connector.source.read_columns import PendingReaderSchemas
    from pyspark_kafka._typed.typed.read_formats import ReadFormats
    from pyspark_kafka.checkpoint.reader_schemas import ReaderSchema
    from pyspark_kafka.connector import Offset

_LOG = logging.getLogger(__name__)


class KafkaStream:
    """A Kafka subscription that a streaming query reads.

    Runs on: driver, one per query run, in one thread; methods block on look-ups, with a deadline. Does not pickle; its
    reader factory does.

    Args:
        options: the parsed options of the stream.
        schema: the Arrow schema of the batches that readers return.
        formats: the formats of keys and values; None: bytes.
        location: a directory of this stream alone, where it keeps its start and the ids of its topics; None: below
            the query's checkpoint, if an option names that, which takes precedence.
        versions: of the schemas it reads with, to be kept once the checkpoint is known to be the query's.
        clock: monotonic seconds.

    Attributes:
        is_continuous: whether the stream plans tasks without an end. The others plan micro-batches, and may commit
            their ends to the checkpoint.
    """

    is_continuous = False

    def __init__(
        self,
        options: StreamReadOptions,
        schema: pa.Schema,
        formats: ReadFormats | None = None,
        *,
        location: str | None = None,
        versions: PendingReaderSchemas | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._versions = versions
        self._schema = schema
        self._formats = formats
        self._clock = clock
        self._offset_reader = KafkaOffsetReader.from_options(options)
        files, directory = None, ""
        if options.checkpoint_location is not None:
            files, directory = CheckpointFiles(options.checkpoint_location), f"sources/{options.source_index}"
        elif location is not None:
            files = CheckpointFiles(location)
        self._watch = TopicWatch(files, directory)
        self._losses = TopicLosses(options, self._offset_reader, self._watch, clock)
        self._starting = StartingPosition(options, self._offset_reader, self._watch, files, directory)
        self._finished = FinishedBatches.from_options(options, None if self.is_continuous else files, clock)

    @classmethod
    def from_options(cls, options: Mapping[str, str], **more: Any) -> Self:
        """Build the stream from the options of `spark.readStream.format("pyspark_kafka")`, with all their columns.

        Args:
            options: see <https://pyspark-kafka.github.io/pyspark-kafka/options/>.
            more: further arguments of the class.

        Raises:
            OptionError: options are missing, unknown, malformed or in conflict.
            SchemaError, RegistryError, CheckpointError, MissingDependencyError: keys or values have a format; see
                `plan_columns`.
        """
        parsed = parse_stream_read_options(options)
        for note in parsed.notes:
            _LOG.warning("%s", note)
        columns = plan_columns(parsed, starts=True)
        return cls(parsed, columns.schema, columns.formats, versions=columns.versions, **more)

    @property
    def readerSchemas(self) -> Mapping[str, ReaderSchema]:
        """The schemas of a registry that keys and values are read with, by column; pure."""
        return {} if self._formats is None else reader_schemas(self._formats)

    def initialOffset(self) -> KafkaSourceOffset:
        """Return the start of a new query: the starting option, resolved for the partitions of the first call.

        Later calls return the same; if the location of the checkpoint is known, also in later runs. Without it, a
        micro-batch stream raises the error of a starting option that does not fit in `latestOffset`, which a new query
        calls next: a query whose first batch was planned by a former run does not need the start.

        Raises:
            OptionError: the option names other partitions than the subscription, or a time without a record.
            CheckpointError: `checkpointLocation` is another query's, or cannot be read or written.
        """
        found = self._starting.get()
        if self.is_continuous:
            self._starting.check()
        self._keep_versions()
        return KafkaSourceOffset(found)

    def deserializeOffset(self, json: str) -> KafkaSourceOffset:
        """Read an offset of a checkpoint, this connector's or Spark's own.

        Raises:
            CheckpointError: the text is not an offset of a Kafka source.
        """
        return KafkaSourceOffset.from_json(json)

    def commit(self, end: Offset) -> None:
        """Report to Kafka's tools that all records before `end` are processed, if an option names a group for that.

        The position itself is in the checkpoint. Does not block.
        """
        self._finished.note(kafka_offset(end).partitions)

    def stop(self) -> None:
        """Wait, for at most about 2 s, until Kafka's tools have the finished position, if an option names a group.

        Connections belong to the process's pool.
        """
        self._finished.stop()

    def _keep_versions(self) -> None:
        """Write the versions of the reader schemas: after a step that refuses the checkpoint of another query."""
        if self._versions is not None:
            self._versions.keep()
            self._versions = None


def kafka_offset(offset: Offset) -> KafkaSourceOffset:
    """Return an offset that an engine passes; raise CheckpointError if another source wrote it."""
    if not isinstance(offset, KafkaSourceOffset):
        raise CheckpointError(
            f"Expected an offset of a Kafka source, got {offset.json()}.",
            condition="CHECKPOINT_OFFSET_INVALID",
            hint="Start the query with a new checkpointLocation: this checkpoint belongs to another source.",
        )
    return offset
