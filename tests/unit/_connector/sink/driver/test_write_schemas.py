"""Schemas of a streaming write: asked for once, kept in the checkpoint, planned again after a change of the query."""

from __future__ import annotations

import json
import logging
import pickle
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka._client.options import parse_write_options
from pyspark_kafka._connector.sink.driver import write_schemas
from pyspark_kafka._connector.sink.driver.write_schemas import NAME, WriteSchemasFile, plan_formats
from pyspark_kafka._connector.source.driver.continuous import KafkaContinuousStream
from pyspark_kafka._connector.table.write import KafkaWrite
from pyspark_kafka._typed.codecs.column_format import ColumnFormat
from pyspark_kafka._typed.codecs.schemas import NamedSchema, RegisteredSchema
from pyspark_kafka.checkpoint.files import CheckpointFiles
from pyspark_kafka.connector import LogicalWriteInfo, PhysicalWriteInfo
from pyspark_kafka.errors import CheckpointError, SchemaError

ROW = pa.struct([("a", pa.int64())])


def record(*names: str) -> str:
    fields = [{"name": name, "type": "long"} for name in names]
    return json.dumps({"type": "record", "name": "R", "fields": fields})


class OneSubject:
    """A registry with the versions of one subject."""

    def __init__(self, *versions: str) -> None:
        self.versions = list(versions)
        self.asked = 0

    def schema_by_subject(self, subject: str, version: int | None = None) -> RegisteredSchema:
        self.asked += 1
        number = version or len(self.versions)
        return RegisteredSchema("AVRO", self.versions[number - 1], (), number, subject, number)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> OneSubject:
    found = OneSubject(record("a"))
    monkeypatch.setattr(write_schemas, "_registry", lambda typed: typed.registry and found)
    monkeypatch.setattr(write_schemas, "_PLANNED", {})
    return found


def plan(
    checkpoint: Path | None,
    kind: pa.DataType = ROW,
    *,
    streaming: bool = True,
    query_id: str | None = None,
    keeps: bool = True,
    **options: str,
) -> ColumnFormat:
    given = {
        "kafka.bootstrap.servers": "not-asked:9092",
        "topic": "t",
        "valueFormat": "avro",
        "schema.registry.url": "https://registry.invalid",
        **options,
    }
    if checkpoint is not None:
        given["checkpointLocation"] = str(checkpoint)
    parsed = parse_write_options(given, streaming=streaming)
    assert parsed.typed is not None
    columns = {"value": kind}
    planned = plan_formats(parsed, parsed.typed, columns, streaming=streaming, query_id=query_id)
    if planned.schemas is not None and keeps:
        pickle.loads(pickle.dumps(planned.schemas)).keep()  # noqa: S301 - our own bytes
    found = planned.formats.value
    assert found is not None
    return found


def schema_id(found: ColumnFormat) -> Any:
    assert found.schema is not None
    return found.schema.schema_id


def in_another_process() -> None:
    write_schemas._PLANNED.clear()


def test_the_registry_is_asked_once_over_micro_batches_processes_and_restarts(
    registry: OneSubject, tmp_path: Path
) -> None:
    assert schema_id(plan(tmp_path)) == 1
    registry.versions.append(record("a", "b"))
    assert schema_id(plan(tmp_path)) == 1
    in_another_process()
    assert schema_id(plan(tmp_path)) == 1
    assert registry.asked == 1


def test_a_query_without_its_checkpoint_asks_once_a_process(registry: OneSubject) -> None:
    plan(None)
    plan(None)
    assert registry.asked == 1
    in_another_process()
    plan(None)
    assert registry.asked == 2


def test_a_plan_without_its_checkpoint_is_used_for_a_bounded_time(
    registry: OneSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    assert schema_id(plan(None)) == 1
    registry.versions.append(record("a"))
    now[0] += write_schemas._KEPT_SECONDS - 1
    assert schema_id(plan(None)) == 1
    now[0] += 2
    assert schema_id(plan(None)) == 2
    assert schema_id(plan(None)) == 2
    assert registry.asked == 2


def test_a_query_whose_id_is_known_keeps_its_plan_and_shares_it_with_no_other(
    registry: OneSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    assert schema_id(plan(None, query_id="one")) == 1
    registry.versions.append(record("a"))
    now[0] += write_schemas._KEPT_SECONDS + 1
    assert schema_id(plan(None, query_id="two")) == 2
    assert schema_id(plan(None)) == 2
    assert schema_id(plan(None, query_id="one")) == 1


@pytest.mark.parametrize("emptied", ["all of it", "the file"])
def test_a_new_checkpoint_in_an_old_place_has_a_plan_of_its_own(
    registry: OneSubject, tmp_path: Path, emptied: str
) -> None:
    place = tmp_path / "checkpoint"
    assert schema_id(plan(place)) == 1
    registry.versions.append(record("a"))
    if emptied == "all of it":
        shutil.rmtree(place)
        place.mkdir()
    else:
        (place / NAME).unlink()
    assert schema_id(plan(place)) == 2
    assert WriteSchemasFile(CheckpointFiles(str(place))).read()[1]["value"].schema_id == 2
    in_another_process()
    assert schema_id(plan(place)) == 2


def test_a_checkpoint_that_another_process_has_made_anew_is_followed(registry: OneSubject, tmp_path: Path) -> None:
    plan(tmp_path)
    file = WriteSchemasFile(CheckpointFiles(str(tmp_path)))
    fingerprint, schemas = file.read()
    file.write(fingerprint, {"value": replace(schemas["value"], schema_id=5)})
    assert schema_id(plan(tmp_path)) == 5
    assert registry.asked == 1


def test_queries_with_other_checkpoints_have_plans_of_their_own(registry: OneSubject, tmp_path: Path) -> None:
    plan(tmp_path / "one")
    registry.versions.append(record("a"))
    assert schema_id(plan(tmp_path / "two")) == 2
    assert schema_id(plan(tmp_path / "one")) == 1


@pytest.mark.parametrize("restarted", [False, True], ids=["one process", "another process"])
def test_other_columns_and_other_options_are_planned_again_and_named_in_the_log(
    registry: OneSubject, tmp_path: Path, restarted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    plan(tmp_path)
    registry.versions.append(record("a", "b"))
    if restarted:
        in_another_process()
    wide = pa.struct([("a", pa.int64()), ("b", pa.int64())])
    with caplog.at_level(logging.WARNING):
        assert schema_id(plan(tmp_path, wide)) == 2
    (message,) = caplog.messages
    assert message == (
        "Options or columns of the query have changed: its values are written with schema 2 from now, before with "
        "schema 1."
    )
    in_another_process()
    assert schema_id(plan(tmp_path, wide)) == 2
    assert registry.asked == 2
    assert schema_id(plan(tmp_path, valueSchemaVersion="1")) == 1


def test_secrets_and_times_do_not_change_the_plan(registry: OneSubject, tmp_path: Path) -> None:
    plan(tmp_path)
    in_another_process()
    others: dict[str, Any] = {
        "schema.registry.timeout": "5s",
        "schema.registry.basic.auth.user.info": "user:secret",
    }
    plan(tmp_path, **others)
    assert registry.asked == 1
    assert b"secret" not in (tmp_path / NAME).read_bytes()


@pytest.mark.usefixtures("registry")
def test_a_plan_that_fails_is_not_kept(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="SCHEMA_COLUMN_MISMATCH"):
        plan(tmp_path, pa.struct([("other", pa.int64())]))
    assert not (tmp_path / NAME).exists()
    assert schema_id(plan(tmp_path)) == 1


def test_a_batch_write_asks_each_time_and_keeps_nothing(registry: OneSubject) -> None:
    plan(None, streaming=False)
    plan(None, streaming=False)
    assert registry.asked == 2
    assert write_schemas._PLANNED == {}


def test_plans_of_a_process_are_bounded(registry: OneSubject, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(write_schemas, "_MAX_PLANNED", 2)
    for number in range(4):
        plan(tmp_path / str(number))
    assert len(write_schemas._PLANNED) == 2
    assert registry.asked == 4


def test_a_text_that_utf_8_cannot_hold_is_kept(tmp_path: Path) -> None:
    file = WriteSchemasFile(CheckpointFiles(str(tmp_path)))
    # JSON may have half of a surrogate pair as an escape.
    schemas = {"value": RegisteredSchema("JSON", '{"title": "\ud800 é 😀"}', schema_id=7)}
    file.write("hash", schemas)
    assert file.read() == ("hash", schemas)


def test_a_file_in_utf_8_is_read(tmp_path: Path) -> None:
    file = WriteSchemasFile(CheckpointFiles(str(tmp_path)))
    schemas = {"value": RegisteredSchema("JSON", '{"title": "é"}', schema_id=7)}
    file.write("hash", schemas)
    written = json.loads((tmp_path / NAME).read_bytes())
    (tmp_path / NAME).write_text(json.dumps(written, ensure_ascii=False), encoding="utf-8")
    assert file.read() == ("hash", schemas)


def test_a_file_holds_all_of_a_schema(tmp_path: Path) -> None:
    file = WriteSchemasFile(CheckpointFiles(str(tmp_path)))
    assert file.read() == ("", {})
    schemas = {
        "key": RegisteredSchema("PROTOBUF", "text", (NamedSchema("a.proto", "other"),), "a-guid", "s", 3),
        "value": RegisteredSchema("JSON", "{}", schema_id=7),
    }
    file.write("hash", schemas)
    assert file.read() == ("hash", schemas)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"v": 2}',
        '{"v": 1, "planned": "x", "schemas": {"value": {"kind": "XML", "text": "", "id": 1, "version": 1}}}',
        '{"v": 1, "planned": "x", "schemas": {"value": {"kind": "AVRO", "text": "", "id": null, "version": 1}}}',
        '{"v": 1, "planned": "x", "schemas": {"value": {"kind": "AVRO", "text": "", "id": 1, "version": "1"}}}',
    ],
)
def test_a_damaged_file_is_an_error_that_says_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / "sink").mkdir()
    (tmp_path / NAME).write_text(text)
    with pytest.raises(CheckpointError, match=r"CHECKPOINT_LOG_INVALID.*sink/schemas of checkpoint .* is malformed"):
        WriteSchemasFile(CheckpointFiles(str(tmp_path))).read()


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once"])
@pytest.mark.parametrize("continuous", [False, True])
def test_write_that_is_refused_before_it_begins_leaves_the_schemas(
    tmp_path: Path, guarantee: str, continuous: bool
) -> None:
    plan(tmp_path)
    before = (tmp_path / NAME).read_bytes()
    given = {
        "kafka.bootstrap.servers": "not-asked:9092",
        "topic": "t",
        "valueFormat": "avro",
        "valueSubject": "other",
        "schema.registry.url": "https://registry.invalid",
        "checkpointLocation": str(tmp_path),
        "deliveryGuarantee": guarantee,
        **({} if guarantee == "at_least_once" else {"commitTopic": "commits"} if not continuous else {}),
    }
    write = KafkaWrite(LogicalWriteInfo(given, pa.schema([("value", ROW)]), "id"))
    source = {"kafka.bootstrap.servers": "not-asked:9092", "subscribe": "s"}
    stream = KafkaContinuousStream.from_options(source)
    made: Any = write.toContinuous(stream, 10_000) if continuous else write.toStreaming()
    assert (tmp_path / NAME).read_bytes() == before
    if guarantee == "exactly_once" and not continuous:
        # There is no id of a query in the checkpoint.
        with pytest.raises(CheckpointError, match="has no query id"):
            made.createStreamingWriterFactory(PhysicalWriteInfo(1))
        assert (tmp_path / NAME).read_bytes() == before
        return
    for _ in range(2):
        made.createStreamingWriterFactory(PhysicalWriteInfo(1))
        after = (tmp_path / NAME).read_bytes()
        assert after != before
