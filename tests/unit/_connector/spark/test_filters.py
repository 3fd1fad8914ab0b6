"""PySpark's filters as those of the connector API, and the reader that takes them."""

from __future__ import annotations

import pickle
from datetime import datetime, timezone
from typing import Any

import pytest
from pyspark.sql import datasource as spark
from pyspark.sql.datasource import DataSourceReader

from pyspark_kafka._client.options import parse_stream_read_options
from pyspark_kafka._connector.spark.data_source import KafkaDataSource
from pyspark_kafka._connector.spark.filters import connector_filter
from pyspark_kafka._connector.spark.readers import BatchReaderAdapter, FilteringBatchReaderAdapter
from pyspark_kafka.connector import SupportsPushDownFilters, filters
from pyspark_kafka.errors import ContractError, OptionError

A = ("a",)
AT = datetime(2023, 11, 14, 22, 13, 20, 500_000, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    "name",
    sorted(
        name
        for name, kind in vars(spark).items()
        if isinstance(kind, type) and issubclass(kind, spark.Filter) and kind not in (spark.Filter, spark.Not, spark.In)
    ),
)
def test_every_filter_of_pyspark_has_a_counterpart_of_its_name(name: str) -> None:
    values = () if name in ("IsNull", "IsNotNull") else ("x",)
    expected = getattr(filters, name)(("a", "b"), *values)
    assert connector_filter(getattr(spark, name)(("a", "b"), *values)) == expected
    assert connector_filter(spark.Not(getattr(spark, name)(("a", "b"), *values))) == filters.Not(expected)


def test_several_values_stay_several() -> None:
    assert connector_filter(spark.In(A, (1, None))) == filters.In(A, (1, None))


def test_filter_of_an_unknown_kind_has_no_counterpart() -> None:
    class Sounds(spark.Filter):
        pass

    assert connector_filter(Sounds()) is None
    assert connector_filter(spark.Not(Sounds())) is None


class Builder(SupportsPushDownFilters):
    """Keeps filters on column a, and returns what it is made to return for the others."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = answer
        self.pushed: list[filters.Filter] = []

    def pushFilters(self, wanted: Any) -> Any:  # noqa: N802 - Spark's contract
        self.pushed += wanted
        return [each for each in wanted if each.attribute != A] if self.answer is None else self.answer

    def build(self) -> Any:
        raise NotImplementedError


def no_batch() -> BatchReaderAdapter:
    raise NotImplementedError


def test_spark_gets_back_its_own_objects_of_what_is_left_and_of_what_is_unknown() -> None:
    class Sounds(spark.Filter):
        pass

    builder = Builder()
    taken, left, unknown = spark.EqualTo(A, 1), spark.EqualTo(("b",), 1), Sounds()
    found = list(FilteringBatchReaderAdapter(builder, no_batch).pushFilters([unknown, taken, left]))
    assert builder.pushed == [filters.EqualTo(A, 1), filters.EqualTo(("b",), 1)]
    assert [id(each) for each in found] == [id(unknown), id(left)]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (7, "must return the filters that the engine evaluates as well, and returned an int"),
        ([filters.IsNull(A)], "must return some of the filters it was given, and there is an IsNull in it"),
    ],
)
def test_mistake_of_a_builder_is_named(answer: Any, text: str) -> None:
    with pytest.raises(ContractError, match=rf"Builder.pushFilters\(\) {text}"):
        FilteringBatchReaderAdapter(Builder(answer), no_batch).pushFilters([spark.EqualTo(A, 1)])


def reader_of(**options: str) -> DataSourceReader:
    source = KafkaDataSource({"kafka.bootstrap.servers": "not-asked:9092", "subscribe": "t", **options})
    return source.reader(source.schema())


@pytest.mark.parametrize(("options", "pushes"), [({}, False), ({"pushDownPredicate": "TRUE"}, True)])
def test_a_reader_pushes_filters_only_where_the_option_asks_for_it(options: dict[str, str], *, pushes: bool) -> None:
    # What Spark looks at: it refuses such a reader where pushing filters down is off.
    own = getattr(reader_of(**options).pushFilters, "__func__", None)
    assert (own is not DataSourceReader.pushFilters) == pushes


def test_a_reader_with_filters_travels_without_what_planned_it() -> None:
    reader = reader_of(pushDownPredicate="true")
    kept = spark.LessThan(("timestamp",), AT)
    assert [*reader.pushFilters([spark.EqualTo(("partition",), 1), kept])] == [kept]
    copy = pickle.loads(pickle.dumps(reader))  # noqa: S301 - our own bytes
    with pytest.raises(RuntimeError, match="executor's copy of the reader"):
        copy.partitions()


def test_a_stream_has_no_filters_to_push() -> None:
    with pytest.raises(OptionError, match="'pushDownPredicate' has no meaning in a streaming read"):
        parse_stream_read_options(
            {"kafka.bootstrap.servers": "not-asked:9092", "subscribe": "t", "pushDownPredicate": "true"}
        )
