"""Checks events of OpenLineage by the published schemas of `tests/golden/openlineage`: the event, and each facet."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource

from kit.pointers import REPO

SCHEMAS = REPO / "tests" / "golden" / "openlineage"
_EVENT = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"


@cache
def _registry() -> Any:
    found = [json.loads(path.read_text()) for path in sorted(SCHEMAS.rglob("*.json"))]
    return Registry().with_resources((each["$id"], Resource.from_contents(each)) for each in found)


def check_event(event: Mapping[str, Any]) -> None:
    """Raise an error if the event, or one of its facets, is not as its schema says, or names a schema of its own."""
    assert event["schemaURL"] == _EVENT
    _check(_EVENT, event)
    for name, facet in facets_of(event):
        schema = str(facet["_schemaURL"])
        _check(schema, facet)
        # The file of a facet also says under which name an event has it.
        assert name in _registry().contents(schema.partition("#")[0])["properties"], name


def facets_of(event: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the facets of the run, the job and the datasets, with their names."""
    parts = [event["run"], event["job"], *event.get("inputs", []), *event.get("outputs", [])]
    for part in parts:
        for kind in ("facets", "inputFacets", "outputFacets"):
            yield from part.get(kind, {}).items()


def _check(schema: str, value: Any) -> None:
    Draft202012Validator({"$ref": schema}, registry=_registry(), format_checker=FormatChecker()).validate(value)
