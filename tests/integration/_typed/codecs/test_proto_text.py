"""Schemas of Protobuf as text, as a set of descriptors and as one descriptor."""

from __future__ import annotations

import base64
import pickle
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2

from pyspark_kafka._client.options import FormatOptions
from pyspark_kafka._typed.codecs.column_decoder import ColumnDecoder
from pyspark_kafka._typed.codecs.column_encoder import ColumnEncoder
from pyspark_kafka._typed.codecs.protobuf import proto_text
from pyspark_kafka._typed.codecs.protobuf.decoding import ProtobufDecoder
from pyspark_kafka._typed.codecs.protobuf.descriptors import find_message
from pyspark_kafka._typed.codecs.protobuf.proto_text import read_file_set
from pyspark_kafka._typed.codecs.schemas import NamedSchema, RegisteredSchema
from pyspark_kafka._typed.typed.column_formats import column_of_schema
from pyspark_kafka._typed.typed.registered_text import encodable
from pyspark_kafka.errors import MissingDependencyError, SchemaError, SetupError

INNER = 'syntax = "proto3"; package b; message Inner { int64 id = 1; }'
OUTER = (
    'syntax = "proto3"; package x; import "google/protobuf/timestamp.proto"; import "b/inner.proto"; '
    "message Outer { google.protobuf.Timestamp at = 1; b.Inner inner = 2; }"
)
REFERENCES = (NamedSchema("b/inner.proto", INNER),)


def file_set(text: str, references: tuple[NamedSchema, ...] = ()) -> bytes:
    return read_file_set(RegisteredSchema("PROTOBUF", text, references))


def names(data: bytes) -> list[str]:
    return [each.name for each in descriptor_pb2.FileDescriptorSet.FromString(data).file]


def refused(text: str, references: tuple[NamedSchema, ...] = ()) -> str:
    with pytest.raises(SchemaError) as caught:
        file_set(text, references)
    assert caught.value.condition == "SCHEMA_INVALID"
    assert caught.value.hint
    return str(caught.value)


def in_base64(message: descriptor_pb2.FileDescriptorProto | descriptor_pb2.FileDescriptorSet) -> str:
    return base64.b64encode(message.SerializeToString()).decode()


def test_text_is_compiled_with_what_it_imports() -> None:
    data = file_set(OUTER, REFERENCES)
    assert names(data) == ["google/protobuf/timestamp.proto", "b/inner.proto", "schema.proto"]
    message = find_message(data)
    assert message.full_name == "x.Outer"
    assert [each.name for each in message.fields] == ["at", "inner"]


def test_text_of_an_older_syntax_is_compiled() -> None:
    assert find_message(file_set("message A { required int32 id = 1; }")).full_name == "A"
    assert find_message(file_set('edition = "2023"; message A { int32 id = 1; }')).full_name == "A"


def test_a_reference_may_have_the_name_that_the_text_would_have() -> None:
    text = 'syntax = "proto3"; import "schema.proto"; message Outer { b.Inner inner = 1; }'
    data = file_set(text, (NamedSchema("schema.proto", INNER),))
    assert names(data) == ["schema.proto", "_schema.proto"]


def test_files_of_google_among_the_references_are_left_out() -> None:
    given = (*REFERENCES, NamedSchema("google/protobuf/timestamp.proto", "not read"))
    assert find_message(file_set(OUTER, given)).full_name == "x.Outer"


def test_files_that_registries_know_are_found() -> None:
    pytest.importorskip("confluent_kafka.schema_registry")
    text = (
        'syntax = "proto3"; import "confluent/meta.proto"; import "confluent/type/decimal.proto"; '
        'message A { int64 id = 1 [(confluent.field_meta).doc = "x"]; confluent.type.Decimal price = 2; }'
    )
    data = file_set(text)
    assert names(data)[-1] == "schema.proto"
    assert [each.name for each in find_message(data).fields] == ["id", "price"]


OPTIONS = """
syntax = "proto3"; package o; import "google/protobuf/descriptor.proto";
extend google.protobuf.FileOptions { string file = 50001; }
extend google.protobuf.MessageOptions { Rule message = 50001; }
extend google.protobuf.FieldOptions { Rule field = 50001; repeated int32 more = 50002; }
extend google.protobuf.OneofOptions { bool one = 50001; }
extend google.protobuf.EnumOptions { bool kind = 50001; }
extend google.protobuf.EnumValueOptions { string name = 50001; }
extend google.protobuf.ServiceOptions { string service = 50001; }
extend google.protobuf.MethodOptions { string method = 50001; }
message Rule { string text = 1; int64 min = 2; }
"""
OPTED = """
syntax = "proto3"; package m; import "o.proto"; option (o.file) = "f";
message M {
  option (o.message) = {text: "m"};
  int64 id = 1 [(o.field).min = 5, (o.more) = 1, (o.more) = 2, deprecated = true];
  oneof choice { option (o.one) = true; string a = 2 [(o.field) = {text: "]"}]; int64 b = 3; }
  Kind kind = 4;
}
enum Kind { option (o.kind) = true; NONE = 0 [(o.name) = "none"]; SOME = 1; }
service S { option (o.service) = "s"; rpc Ask(M) returns (M) { option (o.method) = "m"; } }
"""
OPTION_FILES = (NamedSchema("o.proto", OPTIONS),)


def forms_of_a_schema_with_options() -> dict[str, RegisteredSchema]:
    data = file_set(OPTED, OPTION_FILES)
    files = descriptor_pb2.FileDescriptorSet.FromString(data).file
    own = {each.name: in_base64(each) for each in files}
    # As buf builds a set: with a field of its own in each file.
    image = descriptor_pb2.FileDescriptorSet(file=files)
    for each in image.file:
        each.MergeFromString(b"\xd2\xf6\x03\x02\x08\x01")
    assert in_base64(image) != base64.b64encode(data).decode()
    return {
        "text": RegisteredSchema("PROTOBUF", OPTED, OPTION_FILES),
        "text alone": RegisteredSchema("PROTOBUF", OPTED),
        "set": RegisteredSchema("PROTOBUF", base64.b64encode(data).decode()),
        "set of another tool": RegisteredSchema("PROTOBUF", in_base64(image)),
        "set alone": RegisteredSchema("PROTOBUF", in_base64(descriptor_pb2.FileDescriptorSet(file=files[-1:]))),
        "files": RegisteredSchema("PROTOBUF", own["schema.proto"], (NamedSchema("o.proto", own["o.proto"]),)),
        "file alone": RegisteredSchema("PROTOBUF", own["schema.proto"]),
    }


FORMS = ("text", "set", "set of another tool", "files")
WITHOUT_THEIR_FILE = (
    "text alone",
    "set alone",
    "file alone",
)


@pytest.mark.parametrize("form", [*FORMS, *WITHOUT_THEIR_FILE])
def test_options_of_a_schema_change_no_value(form: str) -> None:
    schema = forms_of_a_schema_with_options()[form]
    options = FormatOptions("protobuf", "none", message="m.M")
    # As it comes to a task.
    column = pickle.loads(pickle.dumps(column_of_schema("value", options, schema)))  # noqa: S301
    values = [b"\x08\x05\x12\x01x\x20\x01", b"", None]
    read = ColumnDecoder(column, None).decode(pa.array(values, pa.binary()))
    assert read.column.to_pylist() == [
        {"id": 5, "a": "x", "b": None, "kind": "SOME"},
        {"id": 0, "a": None, "b": None, "kind": "NONE"},
        None,
    ]
    assert ColumnEncoder(replace(column, schema=encodable(schema))).encode(read.column).to_pylist() == values


def test_a_task_reads_a_schema_whose_options_the_driver_alone_knows() -> None:
    """The modules with the options of Confluent make them known to a whole process."""
    pytest.importorskip("confluent_kafka.schema_registry")
    text = (
        'syntax = "proto3"; import "confluent/meta.proto"; '
        'message M { int64 id = 1 [(confluent.field_meta) = {params: [{key: "connect.type", value: "int16"}]}]; }'
    )
    column = column_of_schema("value", FormatOptions("protobuf", "none"), RegisteredSchema("PROTOBUF", text))
    program = (
        "import pickle, sys, pyarrow as pa; from pyspark_kafka._typed.codecs.column_decoder import ColumnDecoder; "
        "column = pickle.load(sys.stdin.buffer); values = pa.array([b'\\x08\\x05']); "
        "print(ColumnDecoder(column, None).decode(values).column.to_pylist(), 'confluent_kafka' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], input=pickle.dumps(column), capture_output=True, check=True)
    assert done.stdout.decode().split() == ["[{'id':", "5}]", "False"]


@pytest.mark.parametrize(
    ("imports", "field", "expected"),
    [
        ("google/type/postal_address.proto", "google.type.PostalAddress", "region_code"),
        ("google/type/color.proto", "google.type.Color", "red"),
        ("google/type/datetime.proto", "google.type.DateTime", "hours"),
        ("confluent/type/variant.proto", "confluent.type.Variant", "metadata"),
        ("confluent/types/decimal.proto", "confluent.type.Decimal", "scale"),
    ],
)
def test_a_file_that_registries_know_needs_no_reference_in_any_form(imports: str, field: str, expected: str) -> None:
    pytest.importorskip("confluent_kafka.schema_registry")
    text = f'syntax = "proto3"; import "{imports}"; message M {{ {field} f = 1; }}'
    data = file_set(text)
    own = descriptor_pb2.FileDescriptorSet.FromString(data).file[-1]
    for form in (text, in_base64(own), base64.b64encode(data).decode()):
        message = find_message(file_set(form)).fields_by_name["f"].message_type
        assert expected in {each.name for each in message.fields}


@pytest.mark.parametrize("form", ["text", "file", "set"])
def test_a_type_of_a_file_that_is_missing_is_refused_with_its_name(form: str) -> None:
    text = 'syntax = "proto3"; import "a/b.proto"; message M { a.B b = 1 [(a.o) = 5]; }'
    if form != "text":
        given = NamedSchema("a/b.proto", 'syntax = "proto3"; package a; message B {}')
        own = descriptor_pb2.FileDescriptorSet.FromString(file_set(text.replace("[(a.o) = 5]", ""), (given,))).file[-1]
        text = in_base64(own if form == "file" else descriptor_pb2.FileDescriptorSet(file=[own]))
    with pytest.raises(SchemaError, match=r"'?a/b\.proto'?(: File not found|, which it lacks: .*a\.B)") as caught:
        find_message(file_set(text))
    assert "--include_imports" in caught.value.hint


def test_a_set_of_descriptors_is_taken_as_it_is() -> None:
    data = file_set(OUTER, REFERENCES)
    text = base64.b64encode(data).decode()
    assert file_set(text) == data
    # As some programs break lines.
    assert file_set("\n".join(text[at : at + 76] for at in range(0, len(text), 76)) + "\n") == data


def test_descriptors_of_single_files_become_a_set() -> None:
    files = descriptor_pb2.FileDescriptorSet.FromString(file_set(OUTER, REFERENCES)).file
    references = tuple(NamedSchema(each.name, in_base64(each)) for each in files[:-1] if "google" not in each.name)
    data = file_set(in_base64(files[-1]), references)
    assert names(data) == ["b/inner.proto", "schema.proto"]
    assert find_message(data).full_name == "x.Outer"


def test_a_descriptor_without_a_name_has_one_of_its_own() -> None:
    file = descriptor_pb2.FileDescriptorSet.FromString(file_set(INNER)).file[0]
    file.name = ""
    assert find_message(file_set(in_base64(file))).full_name == "b.Inner"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("messag A {}", "schema.proto:1:1: Expected top-level statement"),
        ('syntax = "proto3"; message A { B b = 1; }', '"B" is not defined'),
        (OUTER, "b/inner.proto: File not found"),
        ('syntax = "proto3"; import "o.proto"; message A { B b = 1 [(o.p) = 1]; }', "o.proto: File not found"),
        ('syntax = "proto3"; import "/etc/passwd"; message A {}', "/etc/passwd"),
        ('syntax = "proto3"; import "../x.proto"; message A {}', "x.proto"),
        ("x", "it is neither the text of a .proto file, nor Base64"),
        ("QUJD", "it is neither a FileDescriptorSet nor a FileDescriptorProto"),
        ("message A {}" + " " * (4 << 20), "it has 4194316 characters, more than 4194304"),
    ],
    ids=lambda text: text[:40],
)
def test_text_that_is_no_schema_is_refused(text: str, expected: str) -> None:
    assert expected in refused(text)


@pytest.mark.parametrize(
    "name", ["../b.proto", "/etc/b.proto", "b/../../c.proto", "", "b/", "b\0c", "b c", "x" * 300, "."]
)
def test_reference_that_would_be_written_elsewhere_is_refused(name: str) -> None:
    assert "which is not a path of a .proto file" in refused(OUTER, (NamedSchema(name, INNER),))


def test_references_that_cannot_be_files_side_by_side_are_refused() -> None:
    given = (NamedSchema("b", INNER), NamedSchema("b/inner.proto", INNER))
    assert "its file 'b/inner.proto' cannot be written" in refused(OUTER, given)


def test_too_many_references_are_refused() -> None:
    given = tuple(NamedSchema(f"r{number}.proto", "") for number in range(501))
    assert "it needs 501 others, more than 500" in refused(OUTER, given)


def test_text_beside_descriptors_is_refused() -> None:
    file = descriptor_pb2.FileDescriptorSet.FromString(file_set(INNER)).file[0]
    assert "it is serialized, and what it imports is text" in refused(in_base64(file), REFERENCES)


def test_nothing_is_left_of_what_was_compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    find_message(file_set('syntax = "proto3"; message OfThisTestAlone { int64 id = 1; }'))
    refused('syntax = "proto3"; message OfThisTestAlone { int64 id = x; }')
    assert list(tmp_path.iterdir()) == []


def test_folders_of_references_are_not_where_modules_come_from(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A reference cannot be code: neither its folder nor the working directory is searched for grpc_tools."""
    (tmp_path / "grpc_tools").mkdir()
    (tmp_path / "grpc_tools" / "__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    given = (NamedSchema("grpc_tools/protoc.py", "raise SystemExit('imported')"),)
    assert find_message(file_set('syntax = "proto3"; message Unharmed { int64 id = 1; }', given)).name == "Unharmed"


def test_schema_is_compiled_once() -> None:
    text = 'syntax = "proto3"; message CompiledOnce { int64 id = 1; }'
    assert file_set(text) is file_set(text)


def test_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proto_text, "find_spec", lambda _: None)
    with pytest.raises(MissingDependencyError, match="'grpcio-tools'"):
        file_set('syntax = "proto3"; message NoCompiler { int64 id = 1; }')


def not_compiled(text: str) -> str:
    with pytest.raises(SetupError) as caught:
        file_set(text)
    assert (caught.value.condition, caught.value.retriable) == ("SCHEMA_COMPILER_FAILED", True)
    return str(caught.value)


def test_compiler_that_does_not_start_or_end_is_no_error_of_the_schema(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = 'syntax = "proto3"; message Waiting { int64 id = 1; }'
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(tmp_path / "none"))
        assert "protoc did not start" in not_compiled(text)
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
        assert "its files cannot be written or read" in not_compiled(text)
    with monkeypatch.context() as patch:
        patch.setattr(proto_text, "_PROTOC", "import threading; threading.Event().wait()")
        patch.setattr(proto_text, "_MAX_SECONDS", 0.2)
        assert "protoc did not end within 0.2 seconds" in not_compiled(text)
    with monkeypatch.context() as patch:
        patch.setattr(proto_text, "_PROTOC", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
        assert "protoc was ended by signal 9" in not_compiled(text)
    # What failed is not kept.
    assert find_message(file_set(text)).name == "Waiting"


def test_compiler_that_cannot_be_imported_is_named_by_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proto_text, "_PROTOC", "raise ImportError('protobuf is too old')")
    said = not_compiled('syntax = "proto3"; message Unlucky { int64 id = 1; }')
    assert "protoc did not start: ImportError: protobuf is too old. No value" in said


def test_a_file_whose_name_is_no_utf8_is_refused() -> None:
    raw = base64.b64encode(b"\x0a\x01\xd5\x12\x01k").decode()
    with pytest.raises(SchemaError, match=r"a name in it is not UTF-8|neither a FileDescriptorSet"):
        read_file_set(RegisteredSchema("PROTOBUF", raw))


def test_editions_are_refused_by_name() -> None:
    given = RegisteredSchema("PROTOBUF", 'edition = "2023"; message M { int32 a = 1; }')
    with pytest.raises(SchemaError) as caught:
        ProtobufDecoder(find_message(read_file_set(given), None))
    assert caught.value.message == (
        "The Protobuf schema cannot be used: file 'schema.proto' is of an edition of Protobuf, and only proto2 and "
        "proto3 can be read."
    )
    given = RegisteredSchema(
        "PROTOBUF",
        'syntax = "proto3"; import "e"; message M { E e = 1; }',
        (NamedSchema("e", 'edition = "2023"; message E { int32 a = 1; }'),),
    )
    with pytest.raises(SchemaError, match="file 'e' is of an edition"):
        ProtobufDecoder(find_message(read_file_set(given), None))
