"""Files of Protobuf that schemas import and registries do not have as references, because they know them.

Source: `KNOWN_DEPENDENCIES` of Confluent's `ProtobufSchema`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_GOOGLE = "google/protobuf/"
_WELL_KNOWN = (
    *("any", "api", "descriptor", "duration", "empty", "field_mask", "source_context", "struct", "timestamp", "type"),
    "wrappers",
)
_TYPES = (
    *("calendar_period", "color", "date", "datetime", "dayofweek", "decimal", "expr", "fraction", "interval", "latlng"),
    *("localized_text", "money", "month", "phone_number", "postal_address", "quaternion", "timeofday"),
)
_CONFLUENT = "confluent_kafka.schema_registry.confluent"
# By path, the modules that have the file, or import it: older and newer clients of Confluent differ.
_MODULES = {
    **{f"{_GOOGLE}{name}.proto": (f"google.protobuf.{name}_pb2",) for name in _WELL_KNOWN},
    **{f"google/type/{name}.proto": (f"google.type.{name}_pb2",) for name in _TYPES},
    "confluent/meta.proto": (f"{_CONFLUENT}.meta_pb2",),
    "confluent/type/decimal.proto": (f"{_CONFLUENT}.type.decimal_pb2", f"{_CONFLUENT}.types.decimal_pb2"),
    "confluent/types/decimal.proto": (f"{_CONFLUENT}.types.decimal_pb2",),
    "confluent/type/variant.proto": (f"{_CONFLUENT}.type.variant_pb2",),
}


def is_known(path: str) -> bool:
    """Return whether registries know a file, so that a schema with it needs no reference."""
    return path in _MODULES or path.startswith(_GOOGLE)


def known_files(paths: Iterable[str], given: Iterable[str] = ()) -> list[Any]:
    """Return known files with what they import, each after its imports, as FileDescriptorProtos.

    Runs on: driver and executor, once a schema; imports the modules that have the files.

    Args:
        paths: of the files. Others, and those whose package is not installed, are left out: what needs them names them.
        given: the paths of existing files, which are left out.

    Raises:
        ImportError: without the package protobuf.
    """
    from google.protobuf import descriptor_pb2  # noqa: PLC0415 - optional

    seen, found = set(given), list[Any]()

    for path in sorted({*paths} - seen):
        for module in _MODULES.get(path, ()):
            try:
                file = import_module(module).DESCRIPTOR
            except ImportError:
                continue
            for each in imports_first(file, seen):
                copied = descriptor_pb2.FileDescriptorProto()
                each.CopyToProto(copied)
                found.append(copied)
            break
    return found


def imports_first(file: Any, seen: set[str]) -> Iterator[Any]:
    """Return the files that a file imports, directly or not, and the file behind them.

    Args:
        file: a FileDescriptor.
        seen: the names of files to leave out, to which the returned ones are added.
    """
    if file.name in seen:
        return
    seen.add(file.name)
    for each in file.dependencies:
        yield from imports_first(each, seen)
    yield file
