"""Names of Spark's classes that continuous queries do not have: the error has a hint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, NoReturn

from pyspark_kafka.version import DOCUMENTATION


class SparkNames:
    """A class whose errors about missing attributes have a hint, for the names of Spark's class."""

    _hints: ClassVar[Mapping[str, str]] = {}

    # A type checker is to find a wrong name itself.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            """Raise the error for a missing attribute.

            Raises:
                AttributeError: with a hint if the name is a name of Spark.
            """
            text = f"{type(self).__name__!r} object has no attribute {name!r}"
            hint = type(self)._hints.get(name)  # noqa: SLF001 - of the class that has this method
            raise AttributeError(text if hint is None else f"{text}. {hint}", name=name, obj=self)


_OWN_FUNCTION = "Use mapInArrow or mapBatches, with a function of Arrow batches."
_OWN_TABLE = f'Use format() with "pyspark_kafka" or a table of your own (see {DOCUMENTATION}custom-sinks/).'
_MICRO_BATCHES = "Use spark.readStream for a query of micro-batches."

READER_HINTS = {
    "schema": "Leave it out: the table has its schema.",
    "table": "Use format(table).load().",
    "name": "Leave it out: a continuous query has one source.",
    **dict.fromkeys(
        ("changes", "csv", "json", "orc", "parquet", "text", "xml"),
        f'Use format() with "pyspark_kafka" or a table of your own (see {DOCUMENTATION}custom-sources/).',
    ),
}
FRAME_HINTS = {
    "write": "Use writeStream.",
    "filter": "Use where, with an Arrow expression.",
    **dict.fromkeys(
        ("mapInPandas", "withColumn", "withColumns", "withColumnRenamed", "selectExpr", "drop", "transform"),
        _OWN_FUNCTION,
    ),
    **dict.fromkeys(
        ("transformWithState", "applyInPandasWithState", "mapGroupsWithState", "flatMapGroupsWithState", "groupByKey"),
        "Use mapWithState, with a function of Arrow batches and state.",
    ),
    **dict.fromkeys(
        ("join", "union", "distinct", "orderBy", "limit"),
        _MICRO_BATCHES,
    ),
    **dict.fromkeys(("agg", "groupby", "groupingSets", "cube", "rollup"), "Use groupBy, with a window."),
    "dropDuplicates": "Use dropDuplicatesWithinWatermark.",
    "columns": "Use schema.names.",
    "printSchema": "Use schema.",
}
GROUP_HINTS = {
    **dict.fromkeys(
        ("count", "sum", "min", "max", "avg", "mean"),
        'Use agg, with a column and a function for each column of the result: agg(n=("*", "count"), …).',
    ),
    **dict.fromkeys(
        [
            "apply",
            "applyInArrow",
            "applyInPandas",
            "applyInPandasWithState",
            "cogroup",
            "transformWithState",
            "transformWithStateInPandas",
        ],
        "Use mapWithState of the rows, with a function of Arrow batches and state.",
    ),
    "pivot": _MICRO_BATCHES,
}
WRITER_HINTS = {
    **dict.fromkeys(("foreach", "foreachBatch", "toTable", "partitionBy", "clusterBy"), _OWN_TABLE),
}
