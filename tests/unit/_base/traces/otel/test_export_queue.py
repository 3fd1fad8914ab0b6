"""The queue of spans: bounded, with deadlines, and without an effect on who ends a span."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult

from kit.waiting import PATIENCE_S, eventually
from pyspark_kafka._base.counters import COUNTERS
from pyspark_kafka._base.traces.otel.export_queue import SPANS_DROPPED, ExportQueue


class HeldExporter:
    """Takes batches while it is let, and has then what they hold."""

    def __init__(self, *, result: Any = SpanExportResult.SUCCESS) -> None:
        self.result = result
        self.taken: list[str] = []
        self.batches: list[int] = []
        self.is_held = threading.Event()
        self.go_on = threading.Event()

    def export(self, spans: Any) -> Any:
        self.is_held.set()
        assert self.go_on.wait(PATIENCE_S)
        if isinstance(self.result, Exception):
            raise self.result
        self.batches.append(len(spans))
        self.taken += [span.name for span in spans]
        return self.result


@pytest.fixture
def exporter() -> Iterator[HeldExporter]:
    made = HeldExporter()
    yield made
    made.go_on.set()


def end_spans(queue: ExportQueue, *names: str) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(queue)
    tracer = provider.get_tracer("test")
    for name in names:
        tracer.start_span(name).end()


def dropped() -> float:
    return COUNTERS.values().get(SPANS_DROPPED, 0)


def test_flush_waits_until_spans_are_exported(exporter: HeldExporter) -> None:
    queue = ExportQueue(exporter)
    exporter.go_on.set()
    end_spans(queue, "a", "b")
    assert queue.force_flush(int(PATIENCE_S * 1000))
    assert exporter.taken == ["a", "b"]


def test_spans_wait_for_others_until_a_flush_a_full_batch_or_the_end(exporter: HeldExporter) -> None:
    exporter.go_on.set()
    queue = ExportQueue(exporter, delay_s=10**6)
    end_spans(queue, "a")
    end_spans(queue, "b")
    assert not exporter.is_held.is_set()
    assert queue.force_flush(int(PATIENCE_S * 1000))
    assert exporter.batches == [2]
    end_spans(queue, *map(str, range(512)))
    eventually(lambda: exporter.batches == [2, 512])
    end_spans(queue, "last")
    queue.shutdown()
    eventually(lambda: exporter.batches == [2, 512, 1])


def test_span_alone_is_exported_after_the_delay(exporter: HeldExporter) -> None:
    exporter.go_on.set()
    end_spans(ExportQueue(exporter, delay_s=0.01), "a")
    eventually(lambda: exporter.taken == ["a"])


def test_exporter_that_hangs_costs_one_deadline_until_it_returns(exporter: HeldExporter) -> None:
    seen: list[float] = []
    queue = ExportQueue(exporter, delay_s=0, clock=lambda: seen.append(0.0) or float(len(seen)))  # type: ignore[func-returns-value]
    end_spans(queue, "a")
    assert exporter.is_held.wait(PATIENCE_S)
    assert not queue.force_flush(500)
    assert queue._is_late
    # The next one does not wait, however long its time limit is.
    assert not queue.force_flush(10**9)
    exporter.go_on.set()
    end_spans(queue, "b")
    with queue._changed:
        assert queue._changed.wait_for(lambda: len(exporter.taken) == 2, PATIENCE_S)
    assert not queue._is_late


def test_full_queue_drops_spans_counts_them_and_says_so_once(
    exporter: HeldExporter, caplog: pytest.LogCaptureFixture
) -> None:
    before, queue = dropped(), ExportQueue(exporter, delay_s=0, max_spans=2)
    end_spans(queue, "held")
    assert exporter.is_held.wait(PATIENCE_S)
    end_spans(queue, "a", "b", "c", "d")
    assert dropped() - before == 2
    exporter.go_on.set()
    assert queue.force_flush(int(PATIENCE_S * 1000))
    assert exporter.taken == ["held", "a", "b"]
    (line,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert line.getMessage() == (
        "The exporter of spans does not keep up: spans of this process are dropped. The query is not affected. "
        "Further ones are counted, and not logged."
    )


@pytest.mark.parametrize("result", [SpanExportResult.FAILURE, RuntimeError("of the exporter")])
def test_batch_of_an_exporter_that_fails_is_dropped_and_counted(result: Any, caplog: pytest.LogCaptureFixture) -> None:
    before, exporter = dropped(), HeldExporter(result=result)
    exporter.go_on.set()
    queue = ExportQueue(exporter)
    end_spans(queue, "a", "b")
    assert queue.force_flush(int(PATIENCE_S * 1000))
    end_spans(queue, "c")
    assert queue.force_flush(int(PATIENCE_S * 1000))
    assert dropped() - before == 3
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["The exporter of spans has failed"]


def test_queue_that_is_shut_down_takes_nothing_more(exporter: HeldExporter) -> None:
    before, queue = dropped(), ExportQueue(exporter)
    exporter.go_on.set()
    end_spans(queue, "a")
    assert queue.force_flush(int(PATIENCE_S * 1000))
    queue.shutdown()
    end_spans(queue, "b")
    assert exporter.taken == ["a"]
    assert dropped() - before == 1
