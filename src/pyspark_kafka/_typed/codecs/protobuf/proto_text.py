"""A schema of Protobuf, in any of its forms, as a serialized FileDescriptorSet.

Forms: the text of a `.proto` file with its imports; a FileDescriptorSet in Base64; a FileDescriptorProto in
Base64, as registries serialize it. Text is compiled by protoc of grpcio-tools, in a process of its own: it writes what
is wrong to the standard error of its process, and ends it if it fails badly.
"""

from __future__ import annotations

import base64
import binascii
import errno
import re
import subprocess
import sys
import tempfile
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark_kafka._typed.codecs.protobuf.descriptors import missing_package
from pyspark_kafka._typed.codecs.protobuf.known_files import known_files
from pyspark_kafka.errors import SchemaError, SetupError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark_kafka._typed.codecs.schemas import NamedSchema, RegisteredSchema

_MAX_BYTES = 4 << 20
_MAX_FILES = 500
_MAX_SECONDS = 30
# Schemas that a process keeps compiled: a worker reads the schemas of several queries.
_KEPT = 64
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")
_NAME = re.compile(r"(?!/)(?!(?:.*/)?\.{1,2}(?:/|$))[\w./+-]{1,250}(?<!/)")
_IMPORT = re.compile(r"""\bimport\s+(?:public\s+|weak\s+)?["']([^"']{1,250})["']""")
# Blanks and comments; texts; names and numbers; any other sign. What has no end takes the rest, so that time is linear.
_TOKEN = re.compile(
    r"""(\s+|//[^\n]*|/\*.*?(?:\*/|\Z))|("(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)|[\w.]+|.""", re.DOTALL
)
_OPENING, _CLOSING = frozenset("[{(<"), frozenset("]})>")
_EMPTY = 'syntax = "proto3";'
# protoc's own log, such as that a text names no syntax.
_LOG_LINE = re.compile(r"[IWEF][0-9]{4} |WARNING: ")
# Fields of descriptors are below it; tools put fields of their own into a set above it.
_FIRST_EXTENSION = 1000
# What a name of a file can be at fault for: the others, such as a full disk, are of the machine.
_OF_THE_NAME = (errno.ENAMETOOLONG, errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.EILSEQ, errno.EINVAL)
# The first argument is where modules are: not the folder with files of others, which Python would look into first.
_PROTOC = (
    "import sys; sys.path[:] = sys.argv.pop(1).split('\\n'); "
    "from grpc_tools import protoc; sys.exit(protoc.main(sys.argv))"
)


def read_file_set(given: RegisteredSchema) -> bytes:
    """Return a schema as a serialized FileDescriptorSet, each file after its imports.

    Runs on: driver and executor, once a schema of a process; a text is compiled, which takes 0.1 seconds.

    Raises:
        SchemaError: it is not a schema of Protobuf, is larger than 4 MiB, or imports what is not among its references.
        SetupError: protoc could not be run on this machine, or did not end; the schema may be good.
        MissingDependencyError: without the package grpcio-tools, if it is a text.
    """
    return _read(given.text, given.references)


@lru_cache(maxsize=_KEPT)
def _read(text: str, references: tuple[NamedSchema, ...]) -> bytes:
    size = len(text) + sum(len(each.text) for each in references)
    if size > _MAX_BYTES:
        raise _unusable(f"it has {size} characters, more than {_MAX_BYTES}")
    if len(references) > _MAX_FILES:
        raise _unusable(f"it needs {len(references)} others, more than {_MAX_FILES}")
    data = _decoded(text)
    if data is None:
        return _compile(text, references)
    others = [_decoded(each.text) for each in references]
    if None in others:
        raise _unusable("it is serialized, and what it imports is text")
    try:
        return _as_set(data, [each for each in others if each is not None])
    except UnicodeDecodeError as error:
        # Names are read as text at their first use.
        raise _unusable("a name in it is not UTF-8") from error


def _decoded(text: str) -> bytes | None:
    """Return the bytes of a text in Base64; None for plain text, which has other characters."""
    if _BASE64.fullmatch(text) is None:
        return None
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise _unusable("it is neither the text of a .proto file, nor Base64") from error


def _as_set(data: bytes, others: Sequence[bytes]) -> bytes:
    try:
        from google.protobuf import descriptor_pb2  # noqa: PLC0415 - optional
    except ImportError as error:
        raise missing_package("protobuf") from error
    found = _parsed(descriptor_pb2.FileDescriptorSet, data)
    # The name of a single file stands where a set has its files, and is none.
    if found is not None and found.file and all(each.name for each in found.file) and not _has_fields_of_a_file(found):
        return data
    files = [_parsed(descriptor_pb2.FileDescriptorProto, each) for each in (*others, data)]
    if any(each is None for each in files):
        raise _unusable("it is neither a FileDescriptorSet nor a FileDescriptorProto")
    for number, each in enumerate(files):
        # As registries serialize it, a file may be without a name, or all may have the same.
        each.name = each.name if each.name not in ("", "default") else f"schema-{number}.proto"
    return bytes(descriptor_pb2.FileDescriptorSet(file=files).SerializeToString())


def _parsed(kind: Any, data: bytes) -> Any:
    """Return a message; None if the bytes are none."""
    try:
        return kind.FromString(data)
    except Exception:  # noqa: BLE001 - DecodeError is an error of its own in protobuf
        return None


def _has_fields_of_a_file(found: Any) -> bool:
    """Return whether a set has fields that only a file has.

    Unknown fields below say nothing: they are the options that a schema defines, and fields of newer compilers.
    """
    from google.protobuf.unknown_fields import UnknownFieldSet  # noqa: PLC0415 - optional

    return any(each.field_number < _FIRST_EXTENSION for each in UnknownFieldSet(found))


def _compile(text: str, references: Sequence[NamedSchema]) -> bytes:
    if find_spec("grpc_tools") is None:
        raise missing_package("grpcio-tools")
    try:
        return _compile_in_folder(text, references)
    except OSError as error:
        raise _not_compiled(f"its files cannot be written or read: {error.strerror}") from error


def _compile_in_folder(text: str, references: Sequence[NamedSchema]) -> bytes:
    name = "schema.proto"
    while any(each.name == name for each in references):
        name = f"_{name}"
    files = {**{each.name: each.text for each in references}, name: text}
    imports = {path for each in files.values() for path in _IMPORT.findall(each)}
    known = known_files(imports, files)
    try:
        return _compile_files(files, name, known)
    except SchemaError:
        included = _included()
        found = {*files, *(each.name for each in known)}
        missing = {path for path in imports - found if not (included / path).is_file()}
        if not missing:
            raise
        # Registries keep a schema without the files that only its options need. What it needs else stays missing.
        bare = {path: without_custom_options(each) for path, each in files.items()}
        try:
            return _compile_files({**dict.fromkeys(missing, _EMPTY), **bare}, name, known)
        except SchemaError:
            pass
        raise


def _compile_files(files: Mapping[str, str], name: str, known: Sequence[Any]) -> bytes:
    from google.protobuf import descriptor_pb2  # noqa: PLC0415 - grpcio-tools needs it too

    with tempfile.TemporaryDirectory(prefix="pyspark-kafka-") as folder:
        place = Path(folder)
        included = _included()
        for file, content in files.items():
            _write(place / "files", file, content, included)
        made = place / "made"
        arguments = [f"--proto_path={place / 'files'}", f"--proto_path={included}", f"--descriptor_set_out={made}"]
        if known:
            (place / "known").write_bytes(descriptor_pb2.FileDescriptorSet(file=known).SerializeToString())
            arguments.append(f"--descriptor_set_in={place / 'known'}")
        _run([*arguments, "--include_imports", name], str(place / "files"))
        return made.read_bytes()


def without_custom_options(text: str) -> str:
    """Return the text of a `.proto` file without its custom options: statements, and in brackets after fields.

    Values need none of them, and a registry does not always have the file that defines them.

    Source: "Options" and "Custom Options" of protobuf.dev: the name of a custom option stands in parentheses.

    Example:
        >>> without_custom_options("int64 a = 1 [(v.min) = 0, deprecated = true]; option (v.x) = {y: 1};")
        'int64 a = 1 [ deprecated = true]; '
    """
    parts = _tokens(text)
    out: list[str] = []
    begins = True
    for part, is_blank in parts:
        if is_blank:
            out.append(part)
            continue
        if part == "[":
            out.append(_kept_of_brackets(parts))
        elif begins and part == "option":
            statement, is_custom = _statement(parts)
            if not is_custom:
                out += [part, statement]
            continue
        else:
            out.append(part)
        begins = part in {";", "{", "}"}
    return "".join(out)


def _tokens(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a text, and whether each is a blank or a comment."""
    return ((found.group(), found.group(1) is not None) for found in _TOKEN.finditer(text))


def _statement(parts: Iterator[tuple[str, bool]]) -> tuple[str, bool]:
    """Return the rest of a statement up to its semicolon, and whether it begins with a parenthesis."""
    found: list[str] = []
    first, depth = "", 0
    for part, is_blank in parts:
        found.append(part)
        if is_blank:
            continue
        first = first or part
        depth += (part in _OPENING) - (part in _CLOSING)
        if part == ";" and depth <= 0:
            break
    return "".join(found), first == "("


def _kept_of_brackets(parts: Iterator[tuple[str, bool]]) -> str:
    """Return the remaining list of options, with its brackets; nothing if no option is left."""
    kept: list[str] = []
    item: list[str] = []
    first, depth = "", 0
    for part, is_blank in parts:
        if not is_blank:
            if depth == 0 and part in {",", "]"}:
                if first != "(":
                    kept.append("".join(item))
                item, first = [], ""
                if part == "]":
                    break
                continue
            first = first or part
            depth += (part in _OPENING) - (part in _CLOSING)
        item.append(part)
    return f"[{','.join(kept)}]" if any(each.strip() for each in kept) else ""


def _included() -> Path:
    """Return the folder of Google's own files, which grpcio-tools has."""
    found = find_spec("grpc_tools")
    assert found is not None  # noqa: S101 - asked before
    assert found.submodule_search_locations is not None  # noqa: S101 - it is a package
    return Path(next(iter(found.submodule_search_locations))) / "_proto"


def _write(folder: Path, name: str, content: str, included: Path) -> None:
    if _NAME.fullmatch(name) is None:
        raise _unusable(f"it refers to '{name[:100]}', which is not a path of a .proto file")
    if (included / name).is_file():
        return
    try:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    except (OSError, UnicodeError) as error:
        if isinstance(error, OSError) and error.errno not in _OF_THE_NAME:
            raise
        raise _unusable(f"its file '{name}' cannot be written: {type(error).__name__}") from error


def _run(arguments: list[str], folder: str) -> None:
    modules = "\n".join(path for path in sys.path if path)
    command = [sys.executable, "-c", _PROTOC, modules, *arguments]
    try:
        done = subprocess.run(  # noqa: S603 - our own program; names are checked before
            command, capture_output=True, stdin=subprocess.DEVNULL, timeout=_MAX_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise _not_compiled(f"protoc did not end within {_MAX_SECONDS} seconds") from error
    except OSError as error:
        raise _not_compiled(f"protoc did not start: {error.strerror}") from error
    if done.returncode < 0:
        # Ended from outside, mostly for want of memory.
        raise _not_compiled(f"protoc was ended by signal {-done.returncode}")
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").replace(f"{folder}/", "").strip()
        lines = [line for line in said.splitlines() if not _LOG_LINE.match(line) and ": warning:" not in line]
        if lines and lines[0].startswith("Traceback "):
            # Of the compiler and not of the text: mostly grpcio-tools and protobuf whose versions do not fit.
            raise _not_compiled(f"protoc did not start: {lines[-1]}"[:300].rstrip("."))
        raise _unusable((lines[0] if lines else f"protoc ended with code {done.returncode}")[:300].rstrip("."))


def _not_compiled(reason: str) -> SetupError:
    """Build the error for a schema that this machine cannot compile; the schema may be valid."""
    return SetupError(
        f"A Protobuf schema was not compiled: {reason}. No value counts as bad because of it.",
        condition="SCHEMA_COMPILER_FAILED",
        hint="Check that this machine has memory and room for temporary files, and that the versions of grpcio-tools "
        "and protobuf fit each other; or set a FileDescriptorSet as the schema, which needs no compiler.",
        retriable=True,
        parameters={"reason": reason},
    )


def _unusable(reason: str) -> SchemaError:
    return SchemaError(
        f"The Protobuf schema cannot be used: {reason}.",
        condition="SCHEMA_INVALID",
        hint="Correct the .proto text; files that it imports must be references of it in the registry, or be in a "
        "FileDescriptorSet that protoc --descriptor_set_out=FILE --include_imports writes.",
        parameters={"reason": reason},
    )
