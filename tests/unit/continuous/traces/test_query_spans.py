"""The spans of a continuous query on the driver, and what their parent is."""

from __future__ import annotations

import pytest

from kit.spans import KeptTracer
from pyspark_kafka._base.traces import process_tracer
from pyspark_kafka._base.traces.batch_ids import batch_trace_id
from pyspark_kafka._base.traces.roles import Traced, Tracer
from pyspark_kafka._base.traces.trace_parent import TraceParent
from pyspark_kafka.continuous.traces.query_spans import query_spans

PARENT = str(TraceParent(5, 6))


class Part(Traced):
    """A source or a sink."""

    def __init__(self, tracer: Tracer | None, parent: str = "") -> None:
        self._tracer, self._parent = tracer, parent

    def open_tracer(self) -> Tracer | None:
        return self._tracer

    @property
    def trace_parent(self) -> str:
        return self._parent


def test_query_has_spans_if_its_source_or_its_sink_asks_for_them() -> None:
    tracer = KeptTracer()
    parts: list[tuple[object, object]] = [
        (Part(tracer), object()),
        (Part(None), Part(tracer)),
        (object(), Part(tracer)),
    ]
    for source, sink in parts:
        found = query_spans(source, sink, "query", "run")
        assert found is not None
        assert found.tracer is tracer
    assert query_spans(Part(None), object(), "query", "run") is None


@pytest.mark.parametrize(("option", "expected"), [(PARENT, PARENT), ("", "of the program")])
def test_parent_is_the_option_or_the_span_of_the_program(
    option: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_tracer, "program_span", lambda: "of the program")
    found = query_spans(Part(KeptTracer()), Part(None, option), "query", "run")
    assert found is not None
    assert found.parent == expected


def test_commit_is_in_the_trace_of_its_epoch() -> None:
    tracer = KeptTracer()
    spans = query_spans(Part(tracer), object(), "query", "run")
    assert spans is not None
    with spans.planning():
        pass
    with pytest.raises(KeyError), spans.committing(4):
        raise KeyError("secret-value")
    plan, commit = tracer.spans
    assert (plan.name, commit.name) == ("plan", "commit")
    assert commit.context.trace_id == batch_trace_id("run", 4)
    assert commit.status.description == "KeyError"
    assert dict(commit.attributes or {})["pyspark_kafka.epoch"] == 4
