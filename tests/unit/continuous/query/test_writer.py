"""Options of a continuous query: what the source, the engine and the sink find of them."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from kit.continuous import SCHEMA, FilesStream, FilesTable, StagedWrite
from kit.pointers import REPO
from pyspark_kafka import continuous
from pyspark_kafka._connector.spark.processes.process_log import StandInHandler
from pyspark_kafka.connector import (
    ContinuousStream,
    LogicalWriteInfo,
    Offset,
    ScanBuilder,
    SupportsSourceOffsets,
    SupportsWrite,
    TableCapability,
)
from pyspark_kafka.continuous.query import writer as writer_module
from pyspark_kafka.continuous.query.arguments import interval_ms
from pyspark_kafka.continuous.query.streams import ContinuousQueryManager
from pyspark_kafka.continuous.reports.events import QueryEvents
from pyspark_kafka.errors import CapabilityError, CheckpointError, OptionError

_NO_SESSION: Any = SimpleNamespace(conf={}, session_id="none")


class BuiltError(Exception):
    """The write was built: with these options."""


class WithWordsInOptions(FilesTable, SupportsWrite):
    """A table whose options have names of several words, as its author writes them."""

    def capabilities(self) -> frozenset[TableCapability]:
        return frozenset({TableCapability.CONTINUOUS_READ, TableCapability.STREAMING_WRITE})

    def schema(self, options: Mapping[str, str]) -> pa.Schema:
        assert options["rootPath"] == "/somewhere"
        return SCHEMA

    def newScanBuilder(self, options: Mapping[str, str]) -> ScanBuilder:
        return super().newScanBuilder({"path": options["rootPath"]})

    def newWriteBuilder(self, info: LogicalWriteInfo) -> Any:
        raise BuiltError(info.options)


def test_warnings_of_the_engine_have_the_form_of_spark_in_a_program_without_logging(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("pyspark_kafka"), "handlers", [])
    frame = continuous.read(_NO_SESSION).format(WithWordsInOptions()).option("rootPath", "/somewhere").load()
    writer = frame.writeStream.format(WithWordsInOptions()).option("tasks", 1)
    with pytest.raises(BuiltError):
        writer.option("checkpointLocation", str(tmp_path)).start()
    assert [type(each) for each in logging.getLogger("pyspark_kafka").handlers] == [StandInHandler]


def test_tables_find_options_whatever_their_case(tmp_path: Path) -> None:
    table = WithWordsInOptions()
    frame = continuous.read(_NO_SESSION).format(table).option("ROOTPATH", "/somewhere").load()
    writer = frame.writeStream.format(table).option("targetPath", "x").option("tasks", 1)
    with pytest.raises(BuiltError) as built:
        writer.option("coordinatorHost", "127.0.0.1").option("checkpointLocation", str(tmp_path)).start()
    (options,) = built.value.args
    assert options["TargetPath"] == "x"


def test_sink_does_not_see_the_options_of_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "QueryRunner", _runner_that_notes_its_plan)
    monkeypatch.setattr(writer_module, "STREAMS", ContinuousQueryManager())
    frame = continuous.read(_NO_SESSION).format("pyspark_kafka").option("kafka.bootstrap.servers", "127.0.0.1:9")
    writer = frame.option("subscribe", "a").load().writeStream.format("pyspark_kafka")
    writer.option("kafka.bootstrap.servers", "127.0.0.1:9").option("topic", "b").option("tasks", 3)
    writer.option("coordinatorHost", "[2001:db8::7]").option("coordinatorPort", 7171)
    query: Any = writer.option("checkpointLocation", str(tmp_path)).start()
    plan = query._runner.plan
    assert (plan.tasks, plan.host, plan.port) == (3, "2001:db8::7", 7171)
    # Without a trigger.
    assert plan.interval_ms == 1_000


def test_columns_of_a_first_select_are_all_that_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "QueryRunner", _runner_that_notes_its_plan)
    frame = continuous.read(_NO_SESSION).format("pyspark_kafka").option("kafka.bootstrap.servers", "127.0.0.1:9")
    rows = frame.option("subscribe", "a").load().select("value", "key").mapBatches(lambda batch: batch)
    writer = rows.writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", "127.0.0.1:9")
    writer.option("topic", "b").option("tasks", 1).option("coordinatorHost", "127.0.0.1")
    query: Any = writer.option("checkpointLocation", str(tmp_path)).start()
    factory = query._runner.plan.stream.createContinuousReaderFactory()
    # Batches of Kafka are not compared with a schema.
    assert query._runner.plan.schema is None
    assert factory.schema.names == ["value", "key"]


def test_checkpoint_without_a_scheme_is_on_the_default_file_system_of_spark(tmp_path: Path) -> None:
    context = SimpleNamespace(hadoopConfiguration=lambda: {"fs.defaultFS": "unknown://nn"})
    session: Any = SimpleNamespace(conf={}, session_id="none", _jsc=context)
    writer = continuous.read(session).format(FilesTable()).option("path", "/somewhere").load().writeStream
    with pytest.raises(CheckpointError, match=f"location unknown://nn{tmp_path} cannot be opened"):
        writer.format(FilesTable()).option("checkpointLocation", str(tmp_path)).start()


@pytest.fixture
def writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(writer_module, "QueryRunner", _runner_that_notes_its_plan)
    monkeypatch.setattr(writer_module, "STREAMS", ContinuousQueryManager())
    frame = continuous.read(_NO_SESSION).format("pyspark_kafka").option("kafka.bootstrap.servers", "127.0.0.1:9")
    writer = frame.option("subscribe", "a").load().writeStream.format("pyspark_kafka")
    writer.option("kafka.bootstrap.servers", "127.0.0.1:9").option("topic", "b").option("tasks", 3)
    writer.option("coordinatorHost", "10.0.0.7").option("checkpointLocation", str(tmp_path))
    return writer


def test_restarts_are_as_the_options_say(writer: Any) -> None:
    plan = writer.start()._runner.plan
    assert plan.max_failures == 3
    assert [plan.pauses.after(count) for count in (1, 2, 3, 4, 99)] == [0.2, 1, 5, 10, 10]
    writer.option("maxFailures", 0).option("restartBackoff", "2 seconds").option("restartBackoffMax", "1 minute")
    plan = writer.start()._runner.plan
    assert plan.max_failures == 0
    assert [plan.pauses.after(count) for count in (1, 2, 3, 4, 99)] == [2, 10, 50, 60, 60]
    with pytest.raises(OptionError, match="Option restartBackoff is 'soon', which is not a span of time"):
        writer.option("restartBackoff", "soon").start()
    with pytest.raises(OptionError, match="Option maxFailures is '-1', and must be a number from 0 to 10000"):
        writer.option("maxFailures", -1).start()


def test_query_whose_start_is_interrupted_is_not_active(writer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: Any) -> None:
        raise KeyboardInterrupt

    streams = ContinuousQueryManager()
    monkeypatch.setattr(writer_module, "STREAMS", streams)
    monkeypatch.setattr(QueryEvents, "started", interrupt)
    with pytest.raises(KeyboardInterrupt):
        writer.start()
    assert streams.active == []


def test_task_timeout_is_at_least_some_signs_of_life(writer: Any) -> None:
    plan = writer.option("taskTimeout", "2 minutes").start()._runner.plan
    assert plan.lost_s == 120.0
    with pytest.raises(OptionError, match="Option taskTimeout is 3 s, and must be at least 5 s"):
        writer.option("taskTimeout", "3 seconds").start()


def test_more_tasks_than_the_process_may_have_files_are_refused(writer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "room_for_tasks", lambda: 900)
    monkeypatch.setattr(writer_module, "file_limit", lambda: 1_024)
    with pytest.raises(OptionError, match=r"Option tasks is 901, .* room for the connections of 900 .* 1024 files"):
        writer.option("tasks", "901").start()


def _runner_that_notes_its_plan(*given: Any) -> Any:
    return type("Noted", (), {"plan": given[1], "start": lambda _: None})()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 second", 1_000),
        ("500 milliseconds", 500),
        ("1 ms", 1),
        ("20MS", 20),
        ("interval 5 seconds", 5_000),
        (" 1 SEC ", 1_000),
        ("2 minutes", 120_000),
        ("3h", 10_800_000),
    ],
)
def test_interval_is_read(text: str, expected: int) -> None:
    assert interval_ms(text) == expected


@pytest.mark.parametrize("text", ["", "0 seconds", "second", "5 bananams", "3 hams", "-1 second", "1.5 seconds", 3])
def test_invalid_interval_is_refused(text: Any) -> None:
    with pytest.raises(OptionError, match="is not a length of an epoch"):
        interval_ms(text)


def test_page_has_the_options_of_the_engine() -> None:
    page = (REPO / "docs" / "continuous.md").read_text().partition("| Option of the writer |")[2].partition("\n\n")[0]
    named = {
        name.lower() for name in re.findall(r"`(\w+)`", "\n".join(line.split("|")[1] for line in page.splitlines()[2:]))
    }
    assert named == {*writer_module._ENGINE_OPTIONS, "checkpointlocation"}


class WithoutGroups(FilesStream):
    """A stream that does not know which rows have a key."""

    keyGroups = ContinuousStream.keyGroups


class LaneWrite(StagedWrite, SupportsSourceOffsets):
    """A sink whose lanes have transactions of their own, without the versions of states."""

    def takeOver(self) -> None:
        raise NotImplementedError

    def committedOffset(self, start: Offset) -> str:
        raise NotImplementedError

    def prepareLanes(self, planned: Any, lanes: int) -> None:
        raise NotImplementedError


class StatefulLaneWrite(LaneWrite):
    """A sink that keeps the versions of states with the positions of its lanes."""

    def committedStates(self, epoch: int) -> Mapping[str, str | None]:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("stream", "write", "states", "condition", "text"),
    [
        (WithoutGroups, StagedWrite, 1, "CAPABILITY_NOT_IMPLEMENTED", "WithoutGroups has no method keyGroups()"),
        (FilesStream, LaneWrite, 1, "CAPABILITY_NOT_IMPLEMENTED", "LaneWrite has no method committedStates()"),
        (FilesStream, StatefulLaneWrite, 33, "STATE_NOT_TRANSACTIONAL", "The query has 33 states, of which timers are"),
    ],
)
def test_state_that_source_or_sink_cannot_keep_is_refused(
    tmp_path: Path, stream: Any, write: Any, states: int, condition: str, text: str
) -> None:
    with pytest.raises(CapabilityError, match=re.escape(text)) as caught:
        writer_module._check_state(stream(str(tmp_path)), write(str(tmp_path)), states)
    assert caught.value.condition == condition


def test_number_of_states_has_a_limit_only_where_the_sink_keeps_their_versions(tmp_path: Path) -> None:
    stream = FilesStream(str(tmp_path))
    writer_module._check_state(stream, StatefulLaneWrite(str(tmp_path)), 32)
    writer_module._check_state(stream, StagedWrite(str(tmp_path)), 33)
