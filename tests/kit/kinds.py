"""The kind of a test, read from its code: what it starts, directly, by its fixtures or by helpers of the tests. Pure.

A kind is a marker, so that `-m "not broker and not spark"` picks tests by it.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from kit.pointers import REPO

# What a program starts where its code has one of these names, the strongest first.
STARTS = {
    "spark": frozenset({"SparkSession", "DatabricksSession"}),
    "broker": frozenset({"EmbeddedKafka"}),
    "process": frozenset({"subprocess", "Popen", "multiprocessing", "fork", "pytester", "posix_spawn"}),
}
# Fixtures that tests ask for by name while they run.
FIXTURES = {"spark": {"spark", "connect_url"}, "broker": {"kafka", "older_kafka"}, "process": {"apicurio", "postgres"}}
KINDS = (*STARTS, "property", "plain")
# Helpers and examples: names in them count as names of the test that calls them. Names in the package do not.
_READ = tuple(str(REPO / folder) for folder in ("tests", "tools", "examples", "fuzz"))


def started_by(functions: Iterable[Any]) -> set[str]:
    """Return the kinds of process that functions start: a subset of the names of `STARTS`."""
    return {kind for function in functions for kind in _started(function)}


@cache
def _started(function: Any) -> frozenset[str]:
    """Return the kinds that a function starts, with all functions of the tests that it can reach."""
    names: set[str] = set()
    asked: set[str] = set()
    seen: set[int] = set()
    left = [function]
    while left:
        value = left.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        for code, scope in _codes(value):
            names.update(code.co_names)
            if "getfixturevalue" in code.co_names:
                asked.update(constant for constant in code.co_consts if isinstance(constant, str))
            found = [scope[name] for name in code.co_names if name in scope]
            left.extend(found)
            for module in found:
                if isinstance(module, types.ModuleType) and str(getattr(module, "__file__", "")).startswith(_READ):
                    left.extend(vars(module)[name] for name in code.co_names if name in vars(module))
    return frozenset(kind for kind, starters in STARTS.items() if names & starters or asked & FIXTURES[kind])


def _codes(value: Any) -> Iterator[tuple[types.CodeType, dict[str, Any]]]:
    """Yield the code of a function, or of the methods of a class, that belongs to the tests, and its global names."""
    value = getattr(value, "__wrapped__", value)
    if isinstance(value, types.MethodType):
        value = value.__func__
    if isinstance(value, types.FunctionType):
        if value.__code__.co_filename.startswith(_READ):
            for code in _nested(value.__code__):
                yield code, value.__globals__
    elif isinstance(value, type) and value.__module__ != "builtins":
        for member in vars(value).values():
            inner = getattr(member, "__func__", None) or getattr(member, "fget", None) or member
            if isinstance(inner, types.FunctionType):
                yield from _codes(inner)


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield a code object and those of the functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested(constant)
