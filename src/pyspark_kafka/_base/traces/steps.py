"""Spans around steps, and the span of a thread, under which look-ups are shown."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark_kafka._base.traces.roles import SpanKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark_kafka._base.traces.roles import Attribute, Span, Tracer

_OF_THREAD = threading.local()


def current_span() -> Span | None:
    """Return the span of the step that this thread is in; None without one."""
    return getattr(_OF_THREAD, "span", None)


@contextmanager
def inside(span: Span) -> Iterator[None]:
    """Make a span the span of this thread while the block runs."""
    before = current_span()
    _OF_THREAD.span = span
    try:
        yield
    finally:
        _OF_THREAD.span = before


@contextmanager
def part_of(span: Span) -> Iterator[None]:
    """Run the block inside a span, which notes its error and stays open."""
    try:
        with inside(span):
            yield
    except BaseException as error:
        span.fail(error)
        raise


def span_name(step: str, topic: str | None) -> str:
    """Return the name of a span: the step, and the topic if there is only one. Names are few."""
    return f"{step} {topic}" if topic else step


def messaging_attributes(operation: str, kind: str, topic: str | None) -> dict[str, Attribute]:
    """Return an operation's attributes, by OpenTelemetry's conventions for messaging.

    Args:
        operation: its name.
        kind: the type of the operation: send, receive or process.
        topic: the only topic; None or empty: there are several.
    """
    destination = {"messaging.destination.name": topic} if topic else {}
    return {
        "messaging.system": "kafka",
        "messaging.operation.name": operation,
        "messaging.operation.type": kind,
        **destination,
    }


@contextmanager
def step(
    tracer: Tracer,
    name: str,
    kind: SpanKind = SpanKind.INTERNAL,
    *,
    parent: str = "",
    trace_id: int = 0,
    attributes: Mapping[str, Attribute] | None = None,
) -> Iterator[Span]:
    """Record the block as a span, with its error; see `Tracer.start`."""
    span = tracer.start(name, kind, parent=parent, trace_id=trace_id, attributes=attributes)
    try:
        with part_of(span):
            yield span
    finally:
        span.end()


@contextmanager
def looking_up(name: str, **attributes: Attribute) -> Iterator[None]:
    """Record the block as a child of the thread's span, if it has one; otherwise do nothing.

    Args:
        name: of the look-up.
        attributes: of the child, without their prefix.
    """
    span = current_span()
    if span is None:
        yield
        return
    began, failure = time.time_ns(), ""
    try:
        yield
    except BaseException as error:
        failure = reason(error)
        raise
    finally:
        named = {f"pyspark_kafka.{key}": value for key, value in attributes.items()}
        span.add_child(name, began, time.time_ns(), named, failure)


def reason(error: BaseException) -> str:
    """Return the name of an error: its condition, or its class. Its text may quote what users have written."""
    return str(getattr(error, "condition", "") or type(error).__name__)
