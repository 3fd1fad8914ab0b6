"""What spans cost a lane of a continuous query: CPU time of turns with the option `traceContext`, beside turns without.

Reader, writer and broker are those of bench/cycle.py. Epochs of all kinds take turns, so that all meet the same
machine. The CPU time is the time of the lane's thread. The third kind has no spans, and values that are longer by what
the header of a record takes: the floor of any way to write it. Run: PYTHONPATH=tests python bench/traces.py
"""

from __future__ import annotations

import os
import random
import time
from dataclasses import replace
from statistics import mean, quantiles
from typing import TYPE_CHECKING, Annotated

import typer

from kit.costs import without_collections
from kit.cycle import Shape, opened_cycle
from pyspark_kafka._base.traces.process_tracer import process_tracer
from pyspark_kafka._base.traces.steps import inside
from pyspark_kafka.continuous.traces.epoch_spans import EpochSpans

if TYPE_CHECKING:
    from kit.cycle import Cycle

_WARM_TURNS = 100
# As in an epoch of 1 s with 10,000 records a second.
_RECORDS = 10_000
# What a record with a header has more: the length of its name and of its value, both, and their number.
_HEADER_BYTES = 1 + 11 + 1 + 55
_KINDS = {
    "off": Shape(traces="off"),
    "link": Shape(traces="link"),
    "bytes": Shape(value_bytes=100 + _HEADER_BYTES),
}


def main(
    blocks: Annotated[int, typer.Option(help="How many epochs of each kind.")] = 40,
    records: Annotated[int, typer.Option(help="Records in a turn and partition, of two.")] = 10,
    sides: Annotated[str, typer.Option(help="both, reader or writer")] = "both",
) -> None:
    """Print the CPU time of an epoch without spans, and how much more it is with them."""
    os.environ.setdefault("OTEL_TRACES_EXPORTER", "none")
    tracer = process_tracer(lambda _: None)
    turns = _RECORDS // (2 * records)
    found: dict[str, list[float]] = {kind: [] for kind in _KINDS}
    for number in range(blocks):
        for kind in random.sample(list(_KINDS), len(_KINDS)):
            shape = replace(_KINDS[kind], records=records, sides=sides)
            with opened_cycle(shape) as cycle, without_collections():
                _take_turns(cycle, _WARM_TURNS)
                spans = EpochSpans(tracer, cycle.reader, parent="", run_id="run", lane=0)
                began = time.thread_time()
                if kind == "link":
                    span = spans.open(number)
                    with inside(span):
                        span.begin()
                        _take_turns(cycle, turns)
                    spans.close(span, _RECORDS, _RECORDS)
                else:
                    _take_turns(cycle, turns)
                found[kind].append(time.thread_time() - began)
    print(f"{_RECORDS} records in {turns} turns ({sides}): {mean(found['off']) * 1000:.1f} ms of CPU without spans")
    print(f"with spans: {_more(found['link'], found['off'])}")
    print(f"with {_HEADER_BYTES} bytes more in each value instead: {_more(found['bytes'], found['off'])}")


def _more(some: list[float], others: list[float]) -> str:
    ratios = [one / other - 1 for one, other in zip(some, others, strict=True)]
    resampled = sorted(mean(random.choices(ratios, k=len(ratios))) for _ in range(2_000))
    low, high = quantiles(resampled, n=20)[0], quantiles(resampled, n=20)[-1]
    return f"{mean(ratios):+.1%} (90 % interval {low:+.1%} to {high:+.1%})"


def _take_turns(cycle: Cycle, turns: int) -> None:
    for _ in range(turns):
        cycle.turn()


if __name__ == "__main__":
    typer.run(main)
