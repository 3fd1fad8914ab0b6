"""Plans of batches, on stand-ins for the JVM's nodes; real plans are in tests/integration/_ops/lineage."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from kit.jvm_nodes import JvmNode, ScalaOption, ScalaSeq
from pyspark_kafka._ops.lineage.plans.spark_plans import batch_parts
from pyspark_kafka._ops.lineage.values import DatasetColumn

SCHEMA = json.dumps({"type": "struct", "fields": [{"name": "value", "type": "binary"}]})
COLUMNS = (DatasetColumn("value", "binary"),)


def relation(table: str = "pyspark_kafka", schema: str = SCHEMA) -> JvmNode:
    options = JvmNode("CaseInsensitiveStringMap", asCaseSensitiveMap={"subscribe": "orders"})
    return JvmNode(
        "DataSourceV2Relation",
        table=JvmNode("PythonTable", name=table),
        options=options,
        schema=JvmNode("StructType", json=schema),
    )


def plan(*leaves: JvmNode) -> JvmNode:
    return JvmNode("Aggregate", nodeName="Aggregate", collectLeaves=ScalaSeq(*leaves))


def scan(rows: int) -> JvmNode:
    metric = JvmNode("SQLMetric", value=rows)
    node = JvmNode("BatchScanExec", children=ScalaSeq())
    node.metrics = lambda: {"numOutputRows": ScalaOption(metric)}  # type: ignore[attr-defined]
    return node


class Executed:
    """A query execution of the JVM."""

    def __init__(self, analyzed: JvmNode, physical: Callable[[], Any]) -> None:
        self.analyzed, self.executedPlan = lambda: analyzed, physical


def test_rows_of_the_only_scan_are_found_below_stages_of_adaptive_plans() -> None:
    stage = JvmNode("ShuffleQueryStageExec", plan=JvmNode("ShuffleExchangeExec", children=ScalaSeq(scan(7))))
    whole = JvmNode("HashAggregateExec", children=ScalaSeq(stage))
    physical = JvmNode("AdaptiveSparkPlanExec", executedPlan=whole, nodeName="AdaptiveSparkPlan")
    parts = batch_parts(Executed(plan(relation()), lambda: physical))
    assert (parts.command, parts.processing, parts.writes) == ("AdaptiveSparkPlan", "BATCH", [])
    (read,) = parts.reads
    assert (dict(read.options), tuple(read.columns), read.rows) == ({"subscribe": "orders"}, COLUMNS, 7)


def test_rows_of_several_scans_are_not_known() -> None:
    physical = JvmNode("UnionExec", nodeName="Union", children=ScalaSeq(scan(1), scan(2)))
    (read,) = batch_parts(Executed(plan(relation()), lambda: physical)).reads
    assert read.rows is None


def test_generated_code_is_named_by_the_node_that_it_is_of() -> None:
    inner = JvmNode("ProjectExec", nodeName="Project", children=ScalaSeq())
    physical = JvmNode("WholeStageCodegenExec", nodeName="WholeStageCodegen (1)", child=inner, children=ScalaSeq(inner))
    assert batch_parts(Executed(plan(relation()), lambda: physical)).command == "Project"


def test_tables_of_others_are_no_part() -> None:
    physical = JvmNode("ProjectExec", nodeName="Project", children=ScalaSeq())
    assert not batch_parts(Executed(plan(relation("other"), JvmNode("LocalRelation")), lambda: physical)).has_topics


def test_query_without_a_physical_plan_is_named_by_its_logical_one() -> None:
    def fails() -> Any:
        raise RuntimeError("planning failed")

    parts = batch_parts(Executed(plan(relation()), fails))
    assert (parts.command, parts.reads[0].rows) == ("Aggregate", None)


@pytest.mark.parametrize("schema", ["{", "[" * 100_000, "{}"], ids=["no JSON", "nested deeply", "no schema"])
def test_columns_that_cannot_be_read_are_left_out(schema: str) -> None:
    physical = JvmNode("ProjectExec", nodeName="Project", children=ScalaSeq())
    (read,) = batch_parts(Executed(plan(relation(schema=schema)), lambda: physical)).reads
    assert tuple(read.columns) == ()
