"""The package's source and sink with a bug, to show that the check notices it. Imported by drivers only."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

from pyspark.sql.datasource import DataSourceStreamReader, DataSourceStreamWriter, InputPartition
from pyspark.sql.types import StructType

from pyspark_kafka import DefaultSource
from pyspark_kafka._connector.sink.commit_marker import MarkerFinding
from pyspark_kafka._connector.sink.driver import publisher

BUGS = {
    "reads_again": "every fourth micro-batch begins 3 offsets before the end of the one before it, in one partition",
    "skips": "every fourth micro-batch begins 2 offsets too late, in one partition",
    "publishes_again": "every fourth micro-batch is published twice: its commit marker is not believed",
}
_EVERY = 4


class PlantedSource(DefaultSource):
    """The package's source and sink; the option `plant` names the bug."""

    def __init__(self, options: dict[str, str]) -> None:
        """Take what is not for the package out of the options."""
        own = dict(options)
        self.plant = own.pop("plant")
        super().__init__(own)

    @classmethod
    def name(cls) -> str:
        """Another name than the package's own."""
        return "planted_kafka"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's contract
        """Return the package's reader, wrapped."""
        shift = {"reads_again": -3, "skips": 2}.get(self.plant, 0)
        plain = super().streamReader(schema)
        planned = [0]

        class Planted(type(plain)):  # type: ignore[misc]
            def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
                planned[0] += 1
                wrong = _shifted(start, end, shift) if shift and planned[0] % _EVERY == 0 else start
                return super().partitions(wrong, end)  # type: ignore[no-any-return]

        plain.__class__ = Planted
        return plain

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's contract
        """Return the package's writer, wrapped."""
        plant = self.plant
        plain = super().streamWriter(schema, overwrite)

        class Planted(type(plain)):  # type: ignore[misc]
            def commit(self, messages: Sequence[Any], batchId: int) -> None:  # noqa: N803 - Spark's contract
                super().commit(copy.copy(messages), batchId)
                if plant == "publishes_again" and batchId % _EVERY == _EVERY - 1:
                    with patch.object(publisher, "judge_marker", lambda *_: MarkerFinding.NOT_COMMITTED):
                        super().commit(messages, batchId)

        plain.__class__ = Planted
        return plain


def _shifted(start: dict[str, Any], end: dict[str, Any], shift: int) -> dict[str, Any]:
    """Move the start of the first partition of which the batch reads something, within what is there."""
    wrong = copy.deepcopy(start)
    for topic, partitions in wrong.items():
        for partition, offset in partitions.items():
            last = end.get(topic, {}).get(partition, 0)
            if last > offset and offset + shift >= 0:
                partitions[partition] = min(offset + shift, last)
                return wrong
    return start
