"""The runs of streaming queries: which events they have, with which rows and names."""

from __future__ import annotations

import pytest

from kit.fakes.clock import Clock
from pyspark_kafka._ops.lineage.naming import ApplicationNames
from pyspark_kafka._ops.lineage.runs import Application, QueryParts, ReadPart, StreamingRuns, WritePart
from pyspark_kafka._ops.lineage.values import DatasetColumn, RegistrySubject, RunFacts

RUN = "019f0a6c-0000-7000-8000-000000000001"
SERVERS = {"kafka.bootstrap.servers": "a:9092"}
COLUMNS = (DatasetColumn("key", "binary"), DatasetColumn("value", "binary"))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def runs(clock: Clock) -> StreamingRuns:
    return StreamingRuns(Application(ApplicationNames("default", "app"), "4.2.0"), clock)


def copy(source: str = "in", target: str = "out") -> QueryParts:
    read = ReadPart(SERVERS | {"subscribe": source}, COLUMNS)
    write = WritePart(SERVERS | {"topic": target}, COLUMNS)
    return QueryParts("WriteToDataSourceV2", [read], [write])


def rows(facts: RunFacts | None) -> tuple[list[int | None], list[int | None]]:
    assert facts is not None
    return [each.rows for each in facts.flow.inputs], [each.rows for each in facts.flow.outputs]


def test_run_that_starts_has_its_topics_and_no_rows(runs: StreamingRuns) -> None:
    facts = runs.start(RUN, copy())
    assert facts is not None
    assert facts.run.name == "app.write_to_data_source_v2.out"
    assert [each.topic for each in facts.flow.inputs] == ["in"]
    assert rows(facts) == ([None], [None])
    assert runs.start(RUN, copy()) is None


def test_run_without_a_part_in_kafka_has_no_events(runs: StreamingRuns) -> None:
    assert runs.start(RUN, QueryParts("MemorySink")) is None
    assert runs.progress(RUN, [], 1) is None
    assert runs.end(RUN, None) is None


def test_run_has_the_rows_of_all_its_micro_batches_every_ten_seconds(runs: StreamingRuns, clock: Clock) -> None:
    runs.start(RUN, copy())
    assert rows(runs.progress(RUN, [({"in"}, 5)], 4)) == ([5], [4])
    assert runs.progress(RUN, [({"in"}, 5)], 4) is None
    clock.now += 9.9
    assert runs.progress(RUN, [({"in"}, 5)], None) is None
    clock.now += 0.2
    assert rows(runs.progress(RUN, [({"in"}, 1)], 1)) == ([16], [9])
    runs.progress(RUN, [({"in"}, 2)], 2)
    assert rows(runs.end(RUN, None)) == ([18], [11])


def test_run_that_fails_has_the_reason_and_is_forgotten(runs: StreamingRuns) -> None:
    runs.start(RUN, copy())
    facts = runs.end(RUN, "no broker")
    assert facts is not None
    assert facts.error == "no broker"
    assert runs.end(RUN, None) is None


def test_rows_of_several_topics_are_not_known_apart(runs: StreamingRuns) -> None:
    runs.start(RUN, copy(source="a,b"))
    assert rows(runs.progress(RUN, [({"a", "b"}, 5)], 5)) == ([None, None], [5])


def test_job_keeps_its_name_when_topics_of_a_pattern_are_found(runs: StreamingRuns) -> None:
    read = ReadPart(SERVERS | {"subscribePattern": ".*"}, COLUMNS)
    facts = runs.start(RUN, QueryParts("ForeachBatchSink", [read], name="Load Orders"))
    assert facts is not None
    assert (facts.run.name, facts.flow.inputs) == ("app.foreach_batch_sink.load_orders", ())
    facts = runs.progress(RUN, [({"found"}, 1)], None)
    assert facts is not None
    assert (facts.run.name, facts.flow.inputs[0].topic) == ("app.foreach_batch_sink.load_orders", "found")


def test_topic_of_two_reads_is_one_input_with_the_rows_of_both(runs: StreamingRuns) -> None:
    parts = copy()
    parts.reads.append(ReadPart(SERVERS | {"subscribe": "in"}, COLUMNS))
    runs.start(RUN, parts)
    assert rows(runs.progress(RUN, [({"in"}, 2), ({"in"}, 3)], 0)) == ([5], [0])


def test_parts_with_options_that_are_wrong_are_left_out(runs: StreamingRuns) -> None:
    parts = copy()
    parts.reads.append(ReadPart({"subscribe": "no servers"}, COLUMNS))
    facts = runs.start(RUN, parts)
    assert facts is not None
    assert [each.topic for each in facts.flow.inputs] == ["in"]


def test_columns_of_a_straight_query_are_copies_of_each_other() -> None:
    parts = copy()
    assert parts.flow().paths == {}
    parts.is_straight = True
    assert parts.flow().paths == {"key": "key", "value": "value"}


def test_subject_that_the_query_has_found_replaces_the_one_of_the_options() -> None:
    options = SERVERS | {"subscribe": "in", "valueFormat": "avro", "schema.registry.url": "http://r"}
    parts = QueryParts("x", [ReadPart(options, COLUMNS)])
    assert parts.flow().inputs[0].subjects == (RegistrySubject("value", "in-value"),)
    parts.reads[0].subjects = [RegistrySubject("value", "in-value", 7)]
    assert parts.flow().inputs[0].subjects == (RegistrySubject("value", "in-value", 7),)
