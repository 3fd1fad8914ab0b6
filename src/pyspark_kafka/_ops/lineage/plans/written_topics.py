"""The topics that rows name in a column `topic`, if an expression of constants makes it, as for dead letters.

Source: Spark `org.apache.spark.sql.catalyst.expressions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

# Of a plan: more are no plan of a person.
_MAX_STEPS = 300


def written_topics(plan: Any) -> set[str]:
    """Return the constants that the column `topic` of a plan may have; a topic of each row's own is not known.

    Args:
        plan: a logical plan of the JVM.
    """
    search = _ConstantSearch(plan)
    return {text for column in items_of(plan.output()) if column.name() == "topic" for text in search.find(column)}


class _ConstantSearch:
    """Follows a column through the projections of a plan to its constants."""

    def __init__(self, plan: Any) -> None:
        self._made: dict[int, Any] = {}
        self._steps = 0
        self._index(plan)

    def _index(self, node: Any) -> None:
        if class_of(node) == "Project":
            for each in items_of(node.projectList()):
                if class_of(each) == "Alias":
                    self._made[each.exprId().id()] = each.child()
        for child in items_of(node.children()):
            self._index(child)

    def find(self, expression: Any, path: tuple[int, ...] = ()) -> Iterator[str]:
        """Yield the constants of an expression.

        Args:
            expression: of the JVM.
            path: the part of a struct that is wanted: places from the outside in.
        """
        self._steps += 1
        if self._steps > _MAX_STEPS:
            return
        kind = class_of(expression)
        if kind == "AttributeReference":
            made = self._made.get(expression.exprId().id())
            if made is not None:
                yield from self.find(made, path)
        elif kind == "Literal":
            value = expression.value()
            if value is not None and not path:
                # Text is written as bytes where it may hold any character.
                yield bytes(value).decode("utf-8", "replace") if isinstance(value, (bytes, bytearray)) else str(value)
        elif kind == "CaseWhen":
            for branch in items_of(expression.branches()):
                yield from self.find(branch._2(), path)  # noqa: SLF001 - Scala's name
            if expression.elseValue().isDefined():
                yield from self.find(expression.elseValue().get(), path)
        elif kind == "If":
            yield from self.find(expression.trueValue(), path)
            yield from self.find(expression.falseValue(), path)
        elif kind == "GetStructField":
            yield from self.find(expression.child(), (expression.ordinal(), *path))
        elif kind == "CreateNamedStruct" and path:
            yield from self.find(expression.valExprs().apply(path[0]), path[1:])
        elif kind in ("Cast", "Alias"):
            yield from self.find(expression.child(), path)


def class_of(node: Any) -> str:
    """Return the name of a JVM object's class."""
    return str(node.getClass().getSimpleName())


def items_of(sequence: Any) -> Iterator[Any]:
    """Yield the items of a Scala sequence."""
    for place in range(sequence.size()):
        yield sequence.apply(place)
