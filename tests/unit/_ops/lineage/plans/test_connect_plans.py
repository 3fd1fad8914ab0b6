"""What requests of Spark Connect say about reads and writes, in messages as PySpark's client makes them."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from pyspark.sql.connect import proto
from pyspark.sql.metrics import MetricValue, PlanMetrics

from pyspark_kafka._connector.spark.dead_letters.sql import text
from pyspark_kafka._ops.lineage.plans.connect_plans import parts_of, query_of
from pyspark_kafka._ops.lineage.runs import QueryParts
from pyspark_kafka._ops.lineage.values import DatasetColumn

SERVERS = {"kafka.bootstrap.servers": "a:9092"}


def read(topic: str = "orders", source: str = "pyspark_kafka") -> proto.Relation:
    relation = proto.Relation()
    relation.read.data_source.format = source
    relation.read.data_source.options.update(SERVERS | {"subscribe": topic})
    return relation


def project(below: proto.Relation, *expressions: str) -> proto.Relation:
    relation = proto.Relation()
    relation.project.input.CopyFrom(below)
    for each in expressions:
        relation.project.expressions.add().expression_string.expression = each
    return relation


def join(left: proto.Relation, right: proto.Relation) -> proto.Relation:
    relation = proto.Relation()
    relation.join.left.CopyFrom(left)
    relation.join.right.CopyFrom(right)
    return relation


def returned(relation: proto.Relation) -> proto.Plan:
    return proto.Plan(root=relation)


def batch(relation: proto.Relation, source: str = "pyspark_kafka", **options: str) -> proto.Plan:
    plan = proto.Plan()
    plan.command.write_operation.input.CopyFrom(relation)
    plan.command.write_operation.source = source
    plan.command.write_operation.options.update(SERVERS | options)
    return plan


def stream(relation: proto.Relation, sink: str = "pyspark_kafka", name: str = "", **options: str) -> proto.Plan:
    plan = proto.Plan()
    start = plan.command.write_stream_operation_start
    start.input.CopyFrom(relation)
    start.format, start.query_name = sink, name
    start.options.update(SERVERS | options)
    return plan


def view(relation: proto.Relation) -> proto.Plan:
    plan = proto.Plan()
    plan.command.create_dataframe_view.input.CopyFrom(relation)
    return plan


def columns(relation: Any) -> tuple[DatasetColumn, ...]:
    return (DatasetColumn(str(relation.WhichOneof("rel_type")), "binary"),)


def parts(plan: proto.Plan, *metrics: PlanMetrics) -> QueryParts:
    query = query_of(plan)
    assert query is not None
    return parts_of(query, columns, metrics)


def topics(found: QueryParts) -> tuple[list[str], list[str]]:
    flow = found.flow()
    return [each.topic for each in flow.inputs], [each.topic for each in flow.outputs]


def step(name: str, **counts: int) -> PlanMetrics:
    return PlanMetrics(name, 1, 2, [MetricValue(each, value, "sum") for each, value in counts.items()])


def test_read_has_its_columns_and_the_rows_of_its_only_scan() -> None:
    scan = step("BatchScan pyspark_kafka", numOutputRows=5)
    found = parts(returned(project(read())), step("WholeStageCodegen (1)"), step("Project"), scan)
    assert (found.command, found.processing) == ("Project", "BATCH")
    (dataset,) = found.flow().inputs
    assert (dataset.namespace, dataset.topic, dataset.rows) == ("kafka://a:9092", "orders", 5)
    assert [each.name for each in dataset.columns] == ["read"]
    assert parts(returned(read()), scan, scan).reads[0].rows is None


def test_reads_keep_the_order_of_the_query() -> None:
    found = parts(returned(project(join(read("b"), join(read("c"), read("a"))))))
    assert [each.options["subscribe"] for each in found.reads] == ["b", "c", "a"]
    assert [each.rows for each in found.reads] == [None, None, None]
    # Without a plan of the server, as after a failure.
    assert found.command == "project"


def test_batch_write_has_both_sides() -> None:
    found = parts(batch(project(read()), topic="copy"))
    assert topics(found) == (["orders"], ["copy"])
    assert (found.command, found.writes[0].streaming, found.writes[0].rows) == ("AppendData pyspark_kafka", False, None)
    assert [each.name for each in found.writes[0].columns] == ["project"]


def test_stream_has_its_name_and_the_last_step_of_classic_spark() -> None:
    found = parts(stream(read(), name="copy", topic="copy"))
    assert (found.command, found.processing, found.name) == ("WriteToDataSourceV2", "STREAMING", "copy")
    assert topics(found) == (["orders"], ["copy"])
    each = stream(read(), sink="")
    each.command.write_stream_operation_start.foreach_batch.python_function.python_ver = "3.11"
    assert parts(each).command == "ForeachBatchSink"
    assert parts(stream(read(), "parquet")).command == "write parquet"


def test_other_sinks_of_a_read_and_other_sources_of_a_write_count() -> None:
    assert topics(parts(batch(read(), "delta"))) == (["orders"], [])
    assert topics(parts(batch(read(source="parquet"), topic="copy"))) == ([], ["copy"])
    plan = proto.Plan()
    plan.command.write_operation_v2.input.CopyFrom(read())
    plan.command.write_operation_v2.table_name = "lake.orders"
    assert topics(parts(plan)) == (["orders"], [])


@pytest.mark.parametrize(
    "plan",
    [returned(read(source="parquet")), batch(read(source="kafka"), "kafka"), view(read()), proto.Plan()],
    ids=["another source", "another connector", "view", "neither"],
)
def test_requests_that_run_no_query_with_a_part_in_kafka_are_none(plan: proto.Plan) -> None:
    assert query_of(plan) is None


def test_format_is_found_as_spark_finds_it() -> None:
    assert topics(parts(batch(read(source="PySpark_Kafka"), "PYSPARK_KAFKA", topic="copy"))) == (["orders"], ["copy"])


def test_topics_that_rows_name_are_the_constants_of_good_rows_and_dead_letters() -> None:
    letter = (
        f"IF(`c` IS NULL, NULL, named_struct('topic', {text('orders.dead')}, 'key', 1)) AS `__pyspark_kafka_letter`"
    )
    either = "CASE WHEN `x` THEN `y` ELSE `topic` END AS `topic`"
    rows = project(project(read(), "'orders.valid' as topic", "value", letter), either)
    assert topics(parts(stream(rows)))[1] == ["orders.dead", "orders.valid"]
    named = project(read())
    alias = named.project.expressions.add().alias
    alias.name.append("topic")
    alias.expr.literal.string = "copy"
    assert topics(parts(batch(named)))[1] == ["copy"]
    assert topics(parts(batch(project(read(), "value AS topic"))))[1] == []


def test_plan_of_a_loop_is_deeper_than_the_stack_of_python() -> None:
    plan = batch(proto.Relation(), topic="copy")
    below = plan.command.write_operation.input
    for _ in range(sys.getrecursionlimit()):
        below = below.project.input
    below.CopyFrom(read())
    assert topics(parts(plan)) == (["orders"], ["copy"])
