"""The least that a Python source and sink can be: rows out of nothing, thrown away. The rest is a connector's own.

Spark finds it as it finds any: `DefaultSource` of a module `pyspark_*` on the Python path.
"""

# ruff: noqa: ARG002, D102, N802, N803 - the methods are those of Spark's contract

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.types import StructType

_PARTITIONS = 4
_ROWS = 250


class TrivialReader(DataSourceStreamReader):
    """Return the same rows once."""

    def initialOffset(self) -> dict[str, int]:
        return {"at": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:
        return {"at": _ROWS}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [InputPartition(number) for number in range(_PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa  # noqa: PLC0415 - in the worker only

        fields = [pa.field("key", pa.binary()), pa.field("value", pa.binary())]
        columns = [pa.repeat(pa.scalar(value, pa.binary()), _ROWS) for value in (b"k000000000", b"v" * 90)]
        yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


class TrivialWriter(DataSourceStreamArrowWriter):
    """Throws its rows away."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()

    def commit(self, messages: Sequence[Any], batchId: int) -> None:
        pass


class DefaultSource(DataSource):
    """Both, by the name `pyspark_trivial`."""

    @classmethod
    def name(cls) -> str:
        return "pyspark_trivial"

    def schema(self) -> str:
        return "key binary, value binary"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return TrivialReader()

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        return TrivialWriter()
