"""The records whose `traceparent` becomes a link: few, distinct, counted."""

from __future__ import annotations

from pyspark_kafka._base.traces.link_sample import MAX_LINKS, LinkSample
from pyspark_kafka._base.traces.trace_parent import TraceParent


def parent(number: int) -> TraceParent:
    return TraceParent(number + 1, 7)


def test_sample_has_each_parent_once_and_counts_what_it_saw() -> None:
    sample = LinkSample()
    sample.add_headers(5, [str(parent(0)).encode(), str(parent(1)), str(parent(0)), b"nonsense", None])
    assert sample.take_new() == [parent(0), parent(1)]
    sample.add_headers(1, [str(parent(2))])
    assert sample.take_new() == [parent(2)]
    assert sample.take_new() == []
    assert sample.counts() == {
        "pyspark_kafka.links.records": 6,
        "pyspark_kafka.links.found": 4,
        "pyspark_kafka.links.malformed": 2,
        "pyspark_kafka.links.dropped": 0,
    }


def test_sample_is_bounded_and_counts_what_it_leaves_out() -> None:
    sample = LinkSample()
    sample.add_headers(MAX_LINKS + 3, [str(parent(number)) for number in range(MAX_LINKS + 3)])
    assert len(sample.take_new()) == MAX_LINKS
    assert sample.dropped == 3


def test_sample_looks_at_ever_fewer_responses() -> None:
    sample = LinkSample()
    assert sum(sample.is_due() for _ in range(1_000)) == 16 + 5
    assert sample.looks == 1_000


def test_sample_without_records_says_nothing() -> None:
    assert LinkSample().counts() == {}
