"""The schema that an option names a file of: nothing in a file that holds something else enters an error."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka import formats
from pyspark_kafka._client.options import FormatOptions, TypedReadOptions, TypedWriteOptions
from pyspark_kafka._typed.typed.read_formats import plan_read
from pyspark_kafka._typed.typed.write_formats import plan_write
from pyspark_kafka.errors import OptionError, SchemaError

ROW = pa.struct([("a", pa.int64())])
ACCOUNT = json.dumps({"type": "hunter2-account", "user": "hunter2-user", "id": "http://[hunter2"})
OTHER_FILES = [
    "root:x:0:0:hunter2:/root:/bin/sh\n",
    "hunter2",
    '"hunter2"',
    ACCOUNT,
    "{hunter2",
    '{"type":"struct","fields":[{"name":"hunter2","type":"hunter2"}]}',
    'syntax = "hunter2"; hunter2',
    "aHVudGVyMg==",
    "a hunter2, b BIGINT",
]


def _read(options: FormatOptions) -> Any:
    return plan_read(TypedReadOptions(value=options), "t")


def _write(options: FormatOptions) -> Any:
    return plan_write(TypedWriteOptions(value=options), {"value": ROW}, "t", None)


def _decode(options: FormatOptions) -> Any:
    return formats.decode(pa.array([b"{}"]), options.format, schema=options.schema)  # type: ignore[arg-type]


def _encode(options: FormatOptions) -> Any:
    return formats.encode(pa.array([{"a": 1}], ROW), options.format, schema=options.schema)  # type: ignore[arg-type]


@pytest.mark.parametrize("plan", [_read, _write, _decode, _encode])
@pytest.mark.parametrize("name", ["json", "avro", "protobuf"])
@pytest.mark.parametrize("text", OTHER_FILES)
def test_file_that_holds_no_schema_is_named_and_not_shown(
    tmp_path: Path, plan: Callable[[FormatOptions], Any], name: str, text: str
) -> None:
    file = tmp_path / "passwd"
    file.write_text(text)
    with pytest.raises((SchemaError, OptionError)) as caught:
        plan(FormatOptions(name, "none", f"file:{file}"))  # type: ignore[arg-type]
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))
    if isinstance(caught.value, SchemaError):
        assert caught.value.condition == "SCHEMA_INVALID"
        assert caught.value.message.startswith(f"Option 'valueSchema' names the file {file}, which does not hold ")
        assert caught.value.hint == ("Correct the path; or set the option to the text of the file, to see the error.")


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("json", '{"properties":{"a":{}}}', "column 'a' has no type"),
        ("avro", '{"type":"record","name":"N","fields":[{"name":"n","type":["null","N"]}]}', "'n'"),
    ],
)
def test_file_of_a_schema_that_is_no_column_is_shown(tmp_path: Path, name: str, text: str, reason: str) -> None:
    file = tmp_path / "schema"
    file.write_text(text)
    with pytest.raises(SchemaError, match=reason):
        _read(FormatOptions(name, "none", f"file:{file}"))  # type: ignore[arg-type]


@pytest.mark.parametrize("plan", [_read, _write])
def test_file_reference_in_capitals_is_resolved(tmp_path: Path, plan: Callable[[FormatOptions], Any]) -> None:
    file = tmp_path / "columns"
    file.write_text("a BIGINT")
    assert plan(FormatOptions("json", "none", f"FILE:{file}")).value.arrow_type == ROW


def test_file_is_read_only_if_the_process_allows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "columns.sql"
    file.write_text("a BIGINT")
    options = FormatOptions("json", "none", f"FILE:{file}")
    monkeypatch.setenv("PYSPARK_KAFKA_REFERENCES", "file:/run/schemas/")
    with pytest.raises(OptionError, match=r"REFERENCE_NOT_ALLOWED.*'valueSchema' asks for the file"):
        _read(options)
    monkeypatch.setenv("PYSPARK_KAFKA_REFERENCES", f"file:{tmp_path}/")
    assert _read(options)
