"""Constants of the column `topic`, in plans whose nodes have the methods of Spark's own."""

from __future__ import annotations

from collections.abc import Sequence

from kit.jvm_nodes import JvmNode, ScalaOption, ScalaSeq
from pyspark_kafka._ops.lineage.plans.written_topics import written_topics


def literal(value: str | bytes | None) -> JvmNode:
    return JvmNode("Literal", value=value)


def column(number: int, name: str = "topic") -> JvmNode:
    return JvmNode("AttributeReference", exprId=JvmNode("ExprId", id=number), name=name)


def alias(number: int, child: JvmNode) -> JvmNode:
    return JvmNode("Alias", exprId=JvmNode("ExprId", id=number), child=child)


def plan(*projections: Sequence[JvmNode], output: JvmNode) -> JvmNode:
    node = JvmNode("Relation", children=ScalaSeq())
    for projection in projections:
        node = JvmNode("Project", projectList=ScalaSeq(*projection), children=ScalaSeq(node))
    return JvmNode("Filter", children=ScalaSeq(node), output=ScalaSeq(column(99, "value"), output))


def test_topic_is_a_constant_of_a_projection_below() -> None:
    first, second = [alias(1, literal("orders"))], [alias(2, JvmNode("Cast", child=column(1)))]
    assert written_topics(plan(first, second, output=column(2))) == {"orders"}


def test_topic_of_each_rows_own_is_not_known() -> None:
    assert written_topics(plan([alias(1, JvmNode("Concat"))], output=column(1))) == set()
    assert written_topics(plan([], output=column(7))) == set()
    assert written_topics(plan([alias(1, literal(None))], output=column(1))) == set()


def test_topics_are_those_of_all_branches_as_of_dead_letters() -> None:
    struct = JvmNode("CreateNamedStruct", valExprs=ScalaSeq(literal(b"orders.dead"), literal("a value")))
    letter = JvmNode("If", trueValue=literal(None), falseValue=struct)
    topic_of_letter = JvmNode("GetStructField", child=column(2), ordinal=0)
    branch = JvmNode("Tuple2", _2=topic_of_letter)
    either = JvmNode("CaseWhen", branches=ScalaSeq(branch), elseValue=ScalaOption(column(1)))
    first = [alias(1, literal("orders.valid")), alias(2, letter)]
    assert written_topics(plan(first, [alias(3, either)], output=column(3))) == {"orders.valid", "orders.dead"}


def test_branches_without_an_else_are_followed() -> None:
    branch = JvmNode("Tuple2", _2=literal("a"))
    either = JvmNode("CaseWhen", branches=ScalaSeq(branch), elseValue=ScalaOption())
    assert written_topics(plan([alias(1, either)], output=column(1))) == {"a"}


def test_plan_that_is_its_own_input_comes_to_an_end() -> None:
    assert written_topics(plan([alias(1, column(1))], output=column(1))) == set()
