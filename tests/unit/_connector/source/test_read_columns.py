"""The columns of a read, and the versions of schemas that a checkpoint keeps, with a registry in memory."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka._client.options import parse_batch_read_options, parse_stream_read_options
from pyspark_kafka._connector.source.driver.continuous import KafkaContinuousStream
from pyspark_kafka._connector.source.driver.micro_batch import KafkaMicroBatchStream
from pyspark_kafka._connector.source.executor.columns import source_schema
from pyspark_kafka._connector.source.read_columns import ReadColumns, plan_columns
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema
from pyspark_kafka._typed.registry import connect
from pyspark_kafka.checkpoint.files import CheckpointFiles
from pyspark_kafka.checkpoint.reader_schemas import ReaderSchema, ReaderSchemasFile
from pyspark_kafka.errors import CheckpointError, SchemaError

READ = {"kafka.bootstrap.servers": "b:9092", "subscribe": "orders"}
JSON = {**READ, "valueFormat": "json", "valueSchema": "id BIGINT, name STRING"}
REGISTRY = {**READ, "valueFormat": "avro", "schema.registry.url": "http://registry:8081"}
VALUE = pa.struct([("id", pa.int64()), ("name", pa.string())])


def record_of(*names: str) -> str:
    fields = [{"name": name, "type": ["null", "long"], "default": None} for name in names]
    return json.dumps({"type": "record", "name": "Order", "fields": fields})


class MemoryRegistry:
    """Versions of subjects; their ids begin at `first_id`."""

    def __init__(self, *texts: str, first_id: int = 10) -> None:
        self.texts = list(texts)
        self.first_id = first_id
        self.asked: list[tuple[str, int | None]] = []

    def schema_by_subject(self, subject: str, version: int | None = None) -> RegisteredSchema:
        """Return the version, or the latest."""
        self.asked.append((subject, version))
        number = len(self.texts) if version is None else version
        text = self.texts[number - 1]
        return RegisteredSchema("AVRO", text, (), self.first_id + number, subject, number)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> MemoryRegistry:
    made = MemoryRegistry(record_of("a"))
    monkeypatch.setattr(connect, "open_registry", lambda _: made)
    return made


def plan_stream(asked: pa.Schema | None = None, *, starts: bool = True, **options: Any) -> ReadColumns:
    """Plan a read, and keep its versions as a stream does that is not refused."""
    found = plan_columns(parse_stream_read_options({**REGISTRY, **options}), asked, starts=starts)
    if found.versions is not None:
        found.versions.keep()
    return found._replace(versions=None)


def fields_of(columns: ReadColumns) -> list[str]:
    return [field.name for field in columns.schema.field("value").type]


def test_columns_of_a_read_of_bytes_are_those_of_the_source() -> None:
    assert plan_columns(parse_batch_read_options(READ)) == (source_schema(include_headers=False), None, None)


def test_typed_columns_stand_in_the_places_of_keys_and_values_and_behind() -> None:
    given = {**JSON, "keyFormat": "string", "includeHeaders": "true", "mode": "PERMISSIVE"}
    given |= {"valueFraming": "confluent", "includeSchemaId": "true"}
    found = plan_columns(parse_batch_read_options(given)).schema
    assert found.names == [
        *("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"),
        *("value_schema_id", "_corrupt_record"),
    ]
    assert (found.field("key").type, found.field("value").type) == (pa.string(), VALUE)


def test_a_read_without_its_typed_columns_is_one_of_bytes() -> None:
    asked = pa.schema([("offset", pa.int64()), ("key", pa.binary())])
    assert plan_columns(parse_batch_read_options(JSON), asked) == (asked, None, None)


def test_a_read_of_some_fields_has_their_type() -> None:
    asked = pa.schema([("value", pa.struct([("name", pa.string())]))])
    found = plan_columns(parse_batch_read_options(JSON), asked)
    assert found.schema is asked
    assert found.formats is not None
    assert found.formats.value is not None
    assert found.formats.value.arrow_type == asked.field("value").type


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (pa.field("value", pa.struct([("other", pa.int64())])), "field 'value.other' does not exist"),
        (pa.field("value", pa.struct([("id", pa.string())])), "field 'value.id' is int64 in the schema, not string"),
        (pa.field("value", pa.binary()), "field 'value' is struct"),
        (pa.field("key", pa.string()), "column 'key' is binary, not string"),
        (pa.field("value", VALUE, nullable=False), "'value' must not be null in it"),
        (
            pa.field("value", pa.struct([pa.field("id", pa.int64(), nullable=False)])),
            "'value.id' must not be null in it, but every part of a typed key or value may be",
        ),
        (pa.field("_corrupt_record", pa.string()), "there is no column '_corrupt_record'"),
    ],
)
def test_typed_columns_that_do_not_fit_are_refused(asked: pa.Field, problem: str) -> None:
    with pytest.raises(SchemaError) as caught:
        plan_columns(parse_batch_read_options(JSON), pa.schema([asked]))
    assert str(caught.value).startswith("[SCHEMA_MISMATCH.SOURCE] The schema given to the reader does not fit: ")
    assert problem in str(caught.value)
    assert "since load()" not in str(caught.value)


def test_a_schema_that_changed_since_load_narrows_or_is_refused(registry: MemoryRegistry) -> None:
    loaded = plan_stream(starts=False).schema
    registry.texts.append(record_of("a", "b"))
    assert fields_of(plan_stream(loaded)) == ["a"]
    registry.texts.append(record_of("b"))
    with pytest.raises(SchemaError, match=r"another schema since load\(\): load again, or set 'valueSchemaVersion'\."):
        plan_stream(loaded)
    with pytest.raises(SchemaError) as caught:
        plan_stream(loaded, valueSchemaVersion="3")
    assert "since load()" not in str(caught.value)


def test_the_version_that_a_query_started_with_is_kept(registry: MemoryRegistry, tmp_path: Path) -> None:
    given: dict[str, Any] = {"checkpointLocation": str(tmp_path), "sourceIndex": "2"}
    assert fields_of(plan_stream(starts=False, **given)) == ["a"]
    assert list(tmp_path.iterdir()) == []
    assert fields_of(plan_stream(**given)) == ["a"]
    registry.texts.append(record_of("a", "b"))
    for starts in (False, True):
        assert fields_of(plan_stream(starts=starts, **given)) == ["a"]
    assert registry.asked[-1] == ("orders-value", 1)
    file = ReaderSchemasFile(CheckpointFiles(str(tmp_path)), "sources/2")
    assert file.read() == {"value orders-value": ReaderSchema("orders-value", 1, "11")}
    # Without the location it is the latest.
    assert fields_of(plan_stream()) == ["a", "b"]


def test_options_take_precedence_over_the_version_of_the_checkpoint(registry: MemoryRegistry, tmp_path: Path) -> None:
    given: dict[str, Any] = {"checkpointLocation": str(tmp_path)}
    plan_stream(**given)
    registry.texts.append(record_of("a", "b"))
    assert fields_of(plan_stream(**given, valueSubject="others")) == ["a", "b"]
    assert fields_of(plan_stream(**given, valueSubject="others", valueSchemaVersion="1")) == ["a"]
    file = ReaderSchemasFile(CheckpointFiles(str(tmp_path)), "sources/0")
    assert file.read() == {
        "value orders-value": ReaderSchema("orders-value", 1, "11"),
        "value others": ReaderSchema("others", 1, "11"),
    }


def test_a_version_that_is_left_for_another_one_is_logged(
    registry: MemoryRegistry, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given: dict[str, Any] = {"checkpointLocation": str(tmp_path)}
    registry.texts.append(record_of("a", "b"))
    plan_stream(**given)
    plan_stream(**given)
    plan_stream(**given, valueSchemaVersion="1", starts=False)
    assert caplog.messages == []
    kept = f"The version is kept in {ReaderSchemasFile(CheckpointFiles(str(tmp_path)), 'sources/0').shown}."
    plan_stream(**given, valueSchemaVersion="1")
    plan_stream(**given, valueSubject="others")
    left, other = caplog.messages
    assert left == (
        "The query reads values with version 1 of subject 'orders-value' from now on, and not with version 2 as "
        f"before: an option names it. {kept}"
    )
    assert other == (
        "The query reads values with version 2 of subject 'others' from now on; the checkpoint has versions of other "
        f"subjects: 'orders-value'. {kept}"
    )


def test_a_wrong_subject_does_not_make_a_query_forget_its_version(registry: MemoryRegistry, tmp_path: Path) -> None:
    given: dict[str, Any] = {"checkpointLocation": str(tmp_path)}
    plan_stream(**given)
    registry.texts.append(record_of("a", "b"))
    assert fields_of(plan_stream(**given, valueSubject="others")) == ["a", "b"]
    assert fields_of(plan_stream(**given)) == ["a"]


@pytest.mark.parametrize("is_first", [False, True])
def test_a_start_whose_columns_are_refused_writes_nothing(
    registry: MemoryRegistry, tmp_path: Path, is_first: bool
) -> None:
    given: dict[str, Any] = {"checkpointLocation": str(tmp_path)}
    if not is_first:
        plan_stream(**given)
    file = ReaderSchemasFile(CheckpointFiles(str(tmp_path)), "sources/0")
    former = file.read()
    registry.texts.append(record_of("b"))
    asked = pa.schema([("value", pa.struct([("c", pa.int64())]))])
    for name, value in (("valueSchemaVersion", "2"), ("valueSubject", "others")):
        with pytest.raises(SchemaError):
            plan_stream(asked, **{**given, name: value})
        assert file.read() == former


def test_a_run_with_a_schema_in_an_option_keeps_the_version_of_the_registry(
    registry: MemoryRegistry, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"checkpointLocation": str(tmp_path)}
    plan_stream(**given)
    plan_stream(**given, valueSchema=record_of("a"))
    registry.texts.append(record_of("a", "b"))
    assert fields_of(plan_stream(**given)) == ["a"]


@pytest.mark.timeout(60)
def test_a_file_that_names_no_schema_is_written_at_the_next_start(registry: MemoryRegistry, tmp_path: Path) -> None:
    file = ReaderSchemasFile(CheckpointFiles(str(tmp_path)), "sources/0")
    file.replace({})
    assert fields_of(plan_stream(checkpointLocation=str(tmp_path))) == ["a"]
    assert file.read() == {"value orders-value": ReaderSchema("orders-value", 1, "11")}
    assert len(registry.asked) == 1


def test_processes_that_start_a_query_at_once_read_with_one_version(
    registry: MemoryRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = ReaderSchemasFile(CheckpointFiles(str(tmp_path)), "sources/0")
    create = ReaderSchemasFile.create

    def late(self: ReaderSchemasFile, schemas: Any) -> bool:
        # Another process was faster, and found an older version.
        create(file, {"value orders-value": ReaderSchema("orders-value", 1, "11")})
        return create(self, schemas)

    registry.texts.append(record_of("a", "b"))
    monkeypatch.setattr(ReaderSchemasFile, "create", late)
    assert fields_of(plan_stream(checkpointLocation=str(tmp_path))) == ["a"]


@pytest.mark.parametrize(
    "changed", [{"valueSchemaVersion": "2"}, {"valueSubject": "others"}, {"valueSubject": "a", "subscribe": "other"}]
)
@pytest.mark.parametrize("kind", [KafkaMicroBatchStream, KafkaContinuousStream])
def test_start_with_the_checkpoint_of_another_query_leaves_its_version(
    registry: MemoryRegistry, tmp_path: Path, changed: dict[str, str], kind: Any
) -> None:
    given: dict[str, Any] = {"checkpointLocation": str(tmp_path)}
    plan_stream(**given)
    registry.texts.append(record_of("a", "b"))
    files = CheckpointFiles(str(tmp_path))
    for batch in range(3):
        files.create(f"offsets/{batch}", b"v1")
    file = ReaderSchemasFile(files, "sources/0")
    before = _all_files(tmp_path)
    stream = kind.from_options({**REGISTRY, **given, **changed})
    with pytest.raises(CheckpointError, match="which belongs to a query that has come to batch 2, but this query is "):
        stream.initialOffset()
    assert _all_files(tmp_path) == before

    # The query itself has its position, and does not ask where to start.
    stream = kind.from_options({**REGISTRY, **given, **changed})
    former = file.read()
    pickle.loads(pickle.dumps(stream._versions)).keep()  # noqa: S301 - our own bytes
    assert file.read() != former


def test_checkpoint_of_a_query_without_versions_gets_none_from_another_query(
    registry: MemoryRegistry, tmp_path: Path
) -> None:
    files = CheckpointFiles(str(tmp_path))
    files.create("offsets/1", b"v1")
    before = _all_files(tmp_path)
    found = plan_columns(parse_stream_read_options({**REGISTRY, "checkpointLocation": str(tmp_path)}), starts=True)
    assert _all_files(tmp_path) == before
    assert found.versions is not None
    found.versions.keep()
    assert ReaderSchemasFile(files, "sources/0").read() == {"value orders-value": ReaderSchema("orders-value", 1, "11")}
    assert registry.asked == [("orders-value", None)]


def _all_files(folder: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


@pytest.mark.timeout(60)
def test_link_that_leads_nowhere_in_place_of_the_versions_is_an_error(registry: MemoryRegistry, tmp_path: Path) -> None:
    (tmp_path / "sources" / "0").mkdir(parents=True)
    (tmp_path / "sources" / "0" / "reader-schemas").symlink_to(tmp_path / "nowhere")
    with pytest.raises(CheckpointError) as caught:
        plan_stream(checkpointLocation=str(tmp_path))
    assert str(caught.value).startswith(
        "[CHECKPOINT_CHANGED] The schema versions of the query cannot be kept: file "
        "sources/0/reader-schemas of checkpoint "
    )
    assert len(registry.asked) == 5
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "1").write_bytes(b"v1")
    with pytest.raises(CheckpointError, match="CHECKPOINT_CHANGED"):
        plan_stream(checkpointLocation=str(tmp_path))


def test_another_schema_under_the_same_version_is_refused(registry: MemoryRegistry, tmp_path: Path) -> None:
    plan_stream(checkpointLocation=str(tmp_path))
    registry.first_id = 50
    with pytest.raises(CheckpointError) as caught:
        plan_stream(checkpointLocation=str(tmp_path), starts=False)
    assert str(caught.value).startswith(
        "[READER_SCHEMA_CHANGED] The query reads values with version 1 of subject 'orders-value', which had the id 11 "
        "when the query began; the registry has the id 51 for it: it is another registry, or the subject was "
        "recreated. The former id is in file sources/0/reader-schemas of checkpoint "
    )


def test_schemas_of_options_leave_no_file(tmp_path: Path) -> None:
    plan_columns(parse_stream_read_options({**JSON, "checkpointLocation": str(tmp_path)}), starts=True)
    assert list(tmp_path.iterdir()) == []
