"""The identity of exactly-once micro-batches, and the check of their sink before any work."""

from __future__ import annotations

import json
from abc import abstractmethod
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.cluster.pool import borrow_client
from pyspark_kafka._client.client.waiting.outage import OutageRetry
from pyspark_kafka._client.client.waiting.stalls import contact_of
from pyspark_kafka._connector.sink.commit_marker import CommitMarker, batch_fingerprint
from pyspark_kafka._connector.sink.transactional_ids import default_id
from pyspark_kafka.checkpoint.files import CheckpointFiles
from pyspark_kafka.checkpoint.offset_log import OffsetSeqLog
from pyspark_kafka.connector import StreamingWrite
from pyspark_kafka.errors import CheckpointError

if TYPE_CHECKING:
    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.options import ExactlyOnceOptions, WriteOptions
    from pyspark_kafka._connector.sink.columns import SinkColumns
    from pyspark_kafka._connector.sink.driver.write_schemas import PendingSchemas

# Sinks that this process has checked, by the class that did; a stream writer is built for every micro-batch.
_CHECKED: set[tuple[type, str, str]] = set()


class BatchIdentity:
    """The commit markers of one query: its id, the number of a batch and a fingerprint, all from the checkpoint.

    Runs on: driver; methods block on the file system. Pickles.

    Args:
        settings: of the exactly-once write, with a checkpoint.

    Raises:
        CheckpointError: by every method: the checkpoint cannot be read, or lacks what is needed.
    """

    def __init__(self, settings: ExactlyOnceOptions) -> None:
        if settings.checkpoint_location is None:
            raise ValueError("an exactly-once stream needs its checkpoint")
        self._settings = settings
        self._checkpoint = CheckpointFiles(settings.checkpoint_location)

    def marker(self, batch_id: int, *, records: int = 0, encoded_bytes: int = 0) -> CommitMarker:
        """Return the marker of a micro-batch, of which the offset log knows."""
        return self._marker(batch_id, self._fingerprint(batch_id), records, encoded_bytes)

    def marker_of_sink(self, batch_id: int = -1) -> CommitMarker:
        """Return a marker that says whose the sink is, and nothing of a batch."""
        return self._marker(batch_id, "", 0, 0)

    def newest_batch(self) -> int:
        """Return the number of the newest micro-batch in the offset log; -1 if there is none."""
        return max((int(name) for name in self._checkpoint.list("offsets") if name.isdecimal()), default=-1)

    def has_run(self) -> bool:
        """Whether the query has committed a micro-batch."""
        return bool(self._checkpoint.list("commits"))

    def query_id(self) -> str:
        """Return the query's id."""
        data = self._checkpoint.read("metadata")
        try:
            return str(json.loads(data or b"")["id"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CheckpointError(
                f"The checkpoint {self._checkpoint.shown} has no query id: its file 'metadata' "
                f"{'is not there' if data is None else 'cannot be read'}. Nothing was written.",
                condition="CHECKPOINT_METADATA_MISSING",
                hint="An exactly-once write needs the checkpointLocation that the query itself has, in a place that "
                "the driver's Python can read. On Spark Connect, name it by an absolute path: a relative one can mean "
                "two folders.",
                parameters={"location": self._checkpoint.shown},
            ) from error

    def _marker(self, batch_id: int, fingerprint: str, records: int, encoded_bytes: int) -> CommitMarker:
        query_id = self.query_id()
        return CommitMarker(
            sink_id=self._settings.transactional_id or default_id(query_id),
            query_id=query_id,
            batch_id=batch_id,
            fingerprint=fingerprint,
            records=records,
            encoded_bytes=encoded_bytes,
        )

    def _fingerprint(self, batch_id: int) -> str:
        entry = OffsetSeqLog(self._checkpoint).get(batch_id)
        if entry is None:
            raise CheckpointError(
                f"The checkpoint {self._checkpoint.shown} has no offsets of batch {batch_id}. Nothing was written.",
                condition="CHECKPOINT_OFFSETS_MISSING",
                hint="Set the option checkpointLocation of the writer to the checkpointLocation of the query; offsets "
                "that are written late (asynchronous progress tracking) do not go with exactly-once writes.",
                parameters={"location": self._checkpoint.shown, "batch_id": batch_id},
            )
        return batch_fingerprint(entry.sources, entry.offsets)


class CheckedSinkWrite(StreamingWrite):
    """An exactly-once write of micro-batches, with its check before any work.

    Runs on: driver.

    Args:
        options: of the write.
        settings: names and times.
        columns: the positions of the sink's columns.
        schemas: of its columns, to be kept in the checkpoint once the sink is checked.
    """

    def __init__(
        self,
        options: WriteOptions,
        settings: ExactlyOnceOptions,
        columns: SinkColumns,
        schemas: PendingSchemas | None = None,
    ) -> None:
        self._identity = BatchIdentity(settings)
        self._options, self._settings, self._columns = options, settings, columns
        self._schemas = schemas

    def _check_sink(self) -> CommitMarker:
        """Check once in this process whether this sink may write, then keep the schemas; blocks.

        An outage is waited out if the query has committed a micro-batch, and so has reached the sink before.

        Returns:
            The sink's commit marker, of no batch.
        """
        ours = self._identity.marker_of_sink()
        key = (type(self), ours.sink_id, ours.query_id)
        if key not in _CHECKED:
            contact = contact_of(self._options.connection.bootstrap_servers)
            retry = OutageRetry(self._options.outage_timeout_ms, contact, reached=self._identity.has_run)

            def attempt() -> None:
                with borrow_client(self._options.connection) as client:
                    self._check(client, ours)

            retry.call(f"checking the sink '{ours.sink_id}'", attempt)
            _CHECKED.add(key)
        if self._schemas is not None:
            self._schemas.keep()
            self._schemas = None
        return ours

    @abstractmethod
    def _check(self, client: KafkaClient, ours: CommitMarker) -> None:
        """Check the sink once."""
