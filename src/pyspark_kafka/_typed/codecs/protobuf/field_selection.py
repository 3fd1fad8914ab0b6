"""A message with fewer fields: what reads values skips the others, as it skips fields that it does not know."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

_GOOGLE = "google.protobuf."


def narrow_message(descriptor: Any, wanted: pa.DataType) -> Any:
    """Return the descriptor of a message with the wanted fields only.

    A message in several places has the fields that are wanted in any of them; Google's are whole.

    Runs on: driver and executor, once a column.

    Args:
        descriptor: the message.
        wanted: a struct, whose fields may have structs with fewer fields, too. Fields that the message does not have
            are left out.

    Returns:
        A descriptor from its own pool; the message itself if all of it is wanted.
    """
    names: dict[str, set[str] | None] = {}
    _collect(descriptor, wanted, names)
    if all(each is None for each in names.values()):
        return descriptor
    from google.protobuf import descriptor_pool  # noqa: PLC0415 - optional

    pool = descriptor_pool.DescriptorPool()
    _add_file(descriptor.file, names, pool, set())
    return pool.FindMessageTypeByName(descriptor.full_name)


def _collect(descriptor: Any, wanted: pa.DataType | None, names: dict[str, set[str] | None]) -> None:
    """Record the wanted fields of a message and its nested messages; None: all."""
    full = descriptor.full_name
    chosen = None
    if wanted is not None and pa.types.is_struct(wanted) and not full.startswith(_GOOGLE):
        chosen = {each.name for each in wanted}
        if chosen >= set(descriptor.fields_by_name):
            chosen = None
    if full in names:
        before = names[full]
        if before is None and wanted is None:
            # All of it was noted: a message may hold itself.
            return
        chosen = None if before is None or chosen is None else before | chosen
    names[full] = chosen
    for each in descriptor.fields:
        if each.message_type is None:
            continue
        inner = None
        if wanted is not None and pa.types.is_struct(wanted):
            if wanted.get_field_index(each.name) >= 0:
                inner = wanted.field(each.name).type
            elif chosen is not None:
                continue
        found = each.message_type
        if found.GetOptions().map_entry:
            found = found.fields_by_name["value"].message_type
            inner = inner.item_type if inner is not None and pa.types.is_map(inner) else None
        elif inner is not None and pa.types.is_list(inner):
            inner = inner.value_type
        if found is not None:
            _collect(found, inner, names)


def _add_file(file: Any, names: dict[str, set[str] | None], pool: Any, added: set[str]) -> None:
    """Add a file after its imports."""
    from google.protobuf import descriptor_pb2  # noqa: PLC0415 - optional

    if file.name in added:
        return
    added.add(file.name)
    for each in file.dependencies:
        _add_file(each, names, pool, added)
    copied = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(copied)
    for message in copied.message_type:
        _narrow(message, f"{copied.package}.{message.name}" if copied.package else message.name, names)
    pool.Add(copied)


def _narrow(message: Any, full: str, names: dict[str, set[str] | None]) -> None:
    for nested in message.nested_type:
        _narrow(nested, f"{full}.{nested.name}", names)
    chosen = names.get(full)
    if chosen is None:
        return
    kept = [each for each in message.field if each.name in chosen]
    # A oneof without a member is not valid.
    groups = sorted({each.oneof_index for each in kept if each.HasField("oneof_index")})
    for each in kept:
        if each.HasField("oneof_index"):
            each.oneof_index = groups.index(each.oneof_index)
    declared = [message.oneof_decl[group] for group in groups]
    fields = [type(each).FromString(each.SerializeToString()) for each in kept]
    oneofs = [type(each).FromString(each.SerializeToString()) for each in declared]
    del message.field[:]
    del message.oneof_decl[:]
    message.field.extend(fields)
    message.oneof_decl.extend(oneofs)
