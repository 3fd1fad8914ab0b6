"""Headers that name the row that a record was made from, so that readers can drop duplicates. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka._connector.sink.executor.header_columns import append_headers, header_type
from pyspark_kafka.errors import OptionError

if TYPE_CHECKING:
    from pyspark_kafka._client.options import WriteOptions

NAMES = ("pyspark-kafka-query", "pyspark-kafka-batch", "pyspark-kafka-partition", "pyspark-kafka-index")
_EACH = len(NAMES)


@dataclass(frozen=True, slots=True)
class TaskOrigin:
    """The task that writes a row.

    Attributes:
        query_id: a streaming query's id, which its checkpoint keeps; of a batch write the id of the job.
        batch_id: the micro-batch; 0 in a batch write.
        partition_id: the task's Spark partition.
    """

    query_id: str
    batch_id: int
    partition_id: int

    @property
    def bytes_per_row(self) -> int:
        """About how much memory the headers of one row take."""
        return sum(map(len, NAMES)) + len(self.query_id) + 40 + _EACH * 12


def task_origin(options: WriteOptions, query_id: str | None, batch_id: int, partition_id: int) -> TaskOrigin | None:
    """Return the identity of a task, for the headers of its records; None without option `identityHeaders`.

    Raises:
        OptionError: the option is set, and the task does not know its query: readers would take records of different
            batches for the same.
    """
    if not options.identity_headers:
        return None
    if not query_id:
        raise OptionError(
            "Option 'identityHeaders' is set, but Spark does not tell the task its query and micro-batch (the local "
            "properties sql.streaming.queryId and streaming.sql.batchId). Nothing of this task was written.",
            condition="QUERY_ID_UNKNOWN",
            hint="Set option 'identityHeaders' to false, and put an id into the rows instead.",
        )
    return TaskOrigin(query_id, batch_id, partition_id)


def with_identity(headers: pa.Array[Any] | None, origin: TaskOrigin, first_index: int, rows: int) -> pa.Array[Any]:
    """Return each row's headers with four more after its own: query, batch, partition, index; all text.

    Runs on: executor; does not block.

    Shape: list<struct<key, value>> without nulls, `rows` long; strings of the width that `headers` has.

    Args:
        headers: the rows' own: list<struct<key, value>>, null for none; None if no row has any.
        origin: the task.
        first_index: the number of the first row among the rows of the task, counted from 0.
        rows: how many rows there are.
    """
    element = header_type(headers)
    ours = _identities(origin, first_index, rows, element)
    owners = pc.shift_right(_count_up(_EACH * rows), _LOG2_EACH)
    return append_headers(headers, ours, owners, pa.repeat(pa.scalar(_EACH, pa.int32()), rows))


_LOG2_EACH = _EACH.bit_length() - 1


def _identities(origin: TaskOrigin, first_index: int, rows: int, element: pa.StructType) -> Any:
    """Return the four headers of each row, row after row."""
    places = _count_up(_EACH * rows)
    which = pc.bit_wise_and(places, _EACH - 1)
    indices = pc.add(_count_up(rows), first_index).cast(pa.string())
    same = pa.array([origin.query_id, str(origin.batch_id), str(origin.partition_id)])
    # The texts of all rows, then an index for each.
    last = _EACH - 1
    at = pc.if_else(pc.equal(which, last), pc.add(pc.shift_right(places, _LOG2_EACH), last), which)
    keys = pa.array(NAMES).take(which).cast(element.field("key").type)
    values = pa.concat_arrays([same, indices]).take(at).cast(element.field("value").type)
    return pa.StructArray.from_arrays([keys, values], fields=[element.field("key"), element.field("value")])


def _count_up(length: int) -> Any:
    """Return 0, 1, 2, … as int64."""
    return pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), length)), 1)
