"""The file of the versions of schemas that a query reads with."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.texts import said
from pyspark_kafka.checkpoint.files import CheckpointFiles
from pyspark_kafka.checkpoint.reader_schemas import ReaderSchema, ReaderSchemasFile
from pyspark_kafka.errors import CheckpointError

ORDERS = ReaderSchema("orders-välue", 3, "7")
KEYS = ReaderSchema("orders-key", 1, "0e5f1a1c")


def file_in(place: Path, directory: str = "sources/1") -> ReaderSchemasFile:
    return ReaderSchemasFile(CheckpointFiles(str(place)), directory)


@pytest.mark.parametrize("directory", ["sources/1", ""])
def test_schemas_are_read_as_they_were_written(tmp_path: Path, directory: str) -> None:
    file = file_in(tmp_path, directory)
    assert file.read() is None
    assert file.create({"value orders-välue": ORDERS, "key orders-key": KEYS})
    assert file_in(tmp_path, directory).read() == {"key orders-key": KEYS, "value orders-välue": ORDERS}
    assert (tmp_path / directory / "reader-schemas").read_text(encoding="utf-8").startswith("v1\n")


def test_a_file_is_created_once_and_replaced_on_purpose(tmp_path: Path) -> None:
    file = file_in(tmp_path)
    assert file.create({"value orders-välue": ORDERS})
    assert not file.create({"key orders-key": KEYS})
    assert file.read() == {"value orders-välue": ORDERS}
    file.replace({"key orders-key": KEYS})
    assert file.read() == {"key orders-key": KEYS}
    file.replace({})
    assert file.read() == {}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "v2\n{}\n",
        "v1\n",
        "v1\n[]",
        'v1\n{"value s": {}}',
        'v1\n{"value s": null}',
        'v1\n{"value s": {"subject": "s", "version": "x", "schema_id": "1"}}',
        'v1\n{"value s": {"subject": "s", "version": "1", "schema_id": "1"}}',
        'v1\n{"value s": {"subject": "s", "version": true, "schema_id": "1"}}',
        'v1\n{"value s": {"subject": "s", "version": 0, "schema_id": "1"}}',
        'v1\n{"value s": {"subject": "s", "version": 1e999, "schema_id": "1"}}',
        'v1\n{"value s": {"subject": "s", "version": 1, "schema_id": 1}}',
        'v1\n{"value s": {"subject": "t", "version": 1, "schema_id": "1"}}',
        'v1\n{"value t": {"subject": "s", "version": 1, "schema_id": "1"}}',
        'v1\n{"value": {"subject": "s", "version": 1, "schema_id": "1"}}',
        'v1\n{"mode s": {"subject": "s", "version": 1, "schema_id": "1"}}',
        'v1\n{"value \\ud800": {"subject": "\\ud800", "version": 1, "schema_id": "1"}}',
        b'v1\n{"value \xff": {"subject": "\xff", "version": 1, "schema_id": "1"}}',
        "v1\n" + "[" * 100_000,
    ],
)
def test_damaged_files_are_refused_with_what_to_do(tmp_path: Path, content: str | bytes) -> None:
    (tmp_path / "sources" / "1").mkdir(parents=True)
    data = content if isinstance(content, bytes) else content.encode()
    (tmp_path / "sources" / "1" / "reader-schemas").write_bytes(data)
    with pytest.raises(CheckpointError) as caught:
        file_in(tmp_path).read()
    assert said(caught.value) == (
        "[CHECKPOINT_READER_SCHEMAS_INVALID] The schemas that the query reads with cannot be read from file "
        f"sources/1/reader-schemas of checkpoint {CheckpointFiles(str(tmp_path)).shown}: it is damaged, or was written "
        "by a newer version of pyspark-kafka. Nothing was read. Hint: Restore the file from a copy of the checkpoint. "
        "If there is none, set 'valueSchemaVersion' or 'keySchemaVersion' to the version that the query has read with, "
        "and remove the file."
    )
