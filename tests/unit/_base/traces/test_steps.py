"""Spans around steps, and look-ups in them."""

from __future__ import annotations

import pytest

from kit.spans import KeptTracer
from pyspark_kafka._base.traces.steps import current_span, inside, looking_up, reason, step
from pyspark_kafka.errors import DeliveryError


def test_step_is_the_span_of_its_thread_and_has_its_look_ups() -> None:
    tracer = KeptTracer()
    with step(tracer, "plan", attributes={"a": 1}) as span:
        assert current_span() is span
        with looking_up("look up schema", schema_id="7"):
            pass
    assert current_span() is None
    child, found = tracer.spans
    assert (child.name, found.name) == ("look up schema", "plan")
    assert child.parent is not None
    assert child.parent.span_id == found.context.span_id
    assert dict(child.attributes or {}) == {"pyspark_kafka.schema_id": "7"}


def test_step_that_fails_names_the_condition_and_no_text() -> None:
    tracer = KeptTracer()
    with pytest.raises(DeliveryError), step(tracer, "send"):
        raise DeliveryError("The record 'secret' was refused.", condition="RECORD_REFUSED")
    (found,) = tracer.spans
    assert dict(found.attributes or {}) == {"error.type": "RECORD_REFUSED"}
    assert found.status.description == "RECORD_REFUSED"
    assert "secret" not in found.to_json()


def test_look_up_that_fails_is_a_child_with_an_error() -> None:
    tracer = KeptTracer()
    with step(tracer, "plan"), pytest.raises(KeyError), looking_up("look up schema"):
        raise KeyError("value")
    assert tracer.spans[0].status.description == "KeyError"
    assert tracer.spans[1].status.is_unset


def test_look_up_outside_of_a_step_is_not_recorded() -> None:
    with looking_up("look up schema"):
        pass
    assert current_span() is None


def test_span_of_a_thread_is_restored_after_an_inner_one() -> None:
    tracer = KeptTracer()
    outer, inner = tracer.start("outer"), tracer.start("inner")
    with inside(outer):
        with inside(inner):
            assert current_span() is inner
        assert current_span() is outer


def test_reason_is_the_condition_or_the_class() -> None:
    assert reason(DeliveryError("text", condition="A_CONDITION")) == "A_CONDITION"
    assert reason(ValueError("text")) == "ValueError"
