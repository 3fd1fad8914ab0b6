"""Plans of reads with spans: which ones there are, and what tasks get of them."""

from __future__ import annotations

from typing import Any

import pytest

from kit.fixtures.offsets import ScriptedOffsets
from kit.spans import KeptTracer
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import Earliest
from pyspark_kafka._base.traces.trace_parent import TraceParent
from pyspark_kafka._client.options import ConnectionOptions, StreamReadOptions, Subscription, TraceOptions
from pyspark_kafka._connector.source.driver.batch import KafkaBatch
from pyspark_kafka._connector.source.driver.micro_batch import KafkaMicroBatchStream
from pyspark_kafka._connector.source.executor.columns import SOURCE_SCHEMA
from pyspark_kafka._connector.table import traced_reads
from pyspark_kafka._connector.table.scan import KafkaScan
from pyspark_kafka._connector.table.traced_reads import TracedBatch, TracedMicroBatchStream
from pyspark_kafka.connector import ReadAllAvailable
from pyspark_kafka.errors import TransportError

READ = {"kafka.bootstrap.servers": "not-asked:9092", "subscribe": "t"}
PARENT = str(TraceParent(5, 6))


@pytest.fixture
def tracer(monkeypatch: pytest.MonkeyPatch) -> KeptTracer:
    made = KeptTracer()
    monkeypatch.setattr(traced_reads, "option_tracer", lambda: made)
    return made


def stream(parent: str = "", *topics: str) -> TracedMicroBatchStream:
    subscription = Subscription("subscribe", topics or ("t",))
    options = StreamReadOptions(
        ConnectionOptions((("not-asked", 9092),)), subscription, Earliest(), trace=TraceOptions("link", parent)
    )
    return TracedMicroBatchStream(options, SOURCE_SCHEMA)


def test_read_has_spans_only_with_the_option() -> None:
    traced = READ | {"traceContext": "link"}
    assert type(KafkaScan(READ).toBatch()) is KafkaBatch
    assert type(KafkaScan(READ).toMicroBatchStream(None)) is KafkaMicroBatchStream
    assert type(KafkaScan(traced).toBatch()) is TracedBatch
    assert type(KafkaScan(traced).toMicroBatchStream(None)) is TracedMicroBatchStream


def test_plan_of_a_micro_batch_has_a_span_with_the_look_up_of_its_end(
    offsets: ScriptedOffsets, tracer: KeptTracer
) -> None:
    offsets.logs = {TopicPartition("t", 0): (0, 10)}
    made = stream(PARENT)
    start = made.initialOffset()
    end = made.latestOffset(start, ReadAllAvailable())
    # Nothing new, and an empty batch: no spans.
    assert made.latestOffset(end, ReadAllAvailable()) == end
    assert list(made.planInputPartitions(end, end)) == []
    assert not tracer.spans
    (task,) = made.planInputPartitions(start, end)
    look_up, plan = tracer.spans
    assert (look_up.name, plan.name) == ("look up ends", "plan t")
    assert plan.parent is not None
    assert plan.parent.span_id == 6
    planned: Any = task
    assert f"{plan.context.span_id:016x}" in planned.trace_parent
    assert dict(plan.attributes or {})["pyspark_kafka.tasks"] == 1
    made.planInputPartitions(start, end)
    assert [span.name for span in tracer.spans].count("look up ends") == 1


def test_look_up_that_fails_has_a_span(offsets: ScriptedOffsets, tracer: KeptTracer) -> None:
    offsets.logs = {TopicPartition("a", 0): (0, 10)}
    made = stream("", "a", "b")
    start = made.initialOffset()

    def fail(*_: Any, **__: Any) -> Any:
        raise TransportError("text", condition="CONNECTION_LOST")

    made._available_now.ends = fail  # type: ignore[method-assign]
    with pytest.raises(TransportError):
        made.latestOffset(start, ReadAllAvailable())
    look_up, plan = tracer.spans
    assert (look_up.name, plan.name) == ("look up ends", "plan")
    assert {span.status.description for span in tracer.spans} == {"CONNECTION_LOST"}


def test_factory_carries_the_spans_and_the_only_topic(offsets: ScriptedOffsets) -> None:
    offsets.logs = {}
    factory: Any = stream(PARENT).createReaderFactory()
    assert (factory.trace, factory.topic) == (TraceOptions("link", PARENT), "t")
    several: Any = stream("", "a", "b").createReaderFactory()
    assert several.topic == ""
