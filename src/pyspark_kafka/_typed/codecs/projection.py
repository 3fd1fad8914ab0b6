"""The projection of a column to its wanted fields: some of them, in any order."""

from __future__ import annotations

import pyarrow as pa

from pyspark_kafka.errors import SchemaError, listed


def check_projection(found: pa.DataType, wanted: pa.DataType, path: str = "value") -> None:
    """Raise unless a column of one type can be projected to another.

    Raises:
        SchemaError: a wanted field does not exist, or has another type.
    """
    if pa.types.is_struct(wanted) and pa.types.is_struct(found):
        for each in wanted:
            number = found.get_field_index(each.name)
            if number < 0:
                raise no_such_field(f"{path}.{each.name}", each.type)
            check_projection(found.field(number).type, each.type, f"{path}.{each.name}")
    elif pa.types.is_list(wanted) and pa.types.is_list(found):
        check_projection(found.value_type, wanted.value_type, f"{path}[]")
    elif pa.types.is_map(wanted) and pa.types.is_map(found):
        check_projection(found.key_type, wanted.key_type, f"{path}[key]")
        check_projection(found.item_type, wanted.item_type, f"{path}[]")
    elif found != wanted and not _becomes(found, wanted):
        raise _no_fit(path, str(found), wanted)


def project(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return a column as another type, as `check_projection` allows; values are moved only where types differ.

    Runs on: executor; pure computation.
    """
    if column.type == wanted and str(column.type) == str(wanted):
        return column
    if pa.types.is_struct(wanted):
        children = [project(column.field(column.type.get_field_index(each.name)), each.type) for each in wanted]
        if not children:
            return pa.Array.from_buffers(wanted, len(column), [column.buffers()[0]], offset=column.offset)
        mask = column.is_null() if column.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=mask)
    if pa.types.is_list(wanted):
        return with_items(column, wanted, project(column.values, wanted.value_type))
    if pa.types.is_map(wanted):
        entries = wanted.field(0).type
        pairs = [project(column.keys, entries.field(0).type), project(column.items, entries.field(1).type)]
        return with_items(column, wanted, pa.StructArray.from_arrays(pairs, fields=list(entries)))
    return column.cast(wanted)


def with_items(column: pa.Array, wanted: pa.DataType, children: pa.Array) -> pa.Array:
    """Return a list or a map as another type, with the same number of other items or pairs."""
    buffers = column.buffers()[:2]
    return pa.Array.from_buffers(wanted, len(column), buffers, column.null_count, column.offset, children=[children])


# Types of formats for which Spark has one type. Each holds every value of the other.
_ALIKE = (pa.types.is_time, pa.types.is_duration, pa.types.is_binary, pa.types.is_string)


def _becomes(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_null(found):
        return True
    if pa.types.is_time(found) and wanted == pa.int64():
        return True
    return any(kind(found) and kind(wanted) for kind in _ALIKE)


def no_such_field(path: str, wanted: pa.DataType) -> SchemaError:
    """Build the error for a wanted field that does not exist."""
    return _no_fit(path, "no such field", wanted)


def missing_field(path: str, wanted: str, found: pa.DataType) -> SchemaError:
    """Build the error for a field that a writer needs and a column lacks.

    Args:
        path: of the field.
        wanted: the owner of the field, as the subject of a sentence: "Avro's record 'R'".
        found: the type of the column.
    """
    has = f"only {listed([repr(each.name) for each in found])}" if found.num_fields else "no field"
    return SchemaError(
        f"Field '{path}' is missing: {wanted} needs it, and the column has {has}.",
        condition="SCHEMA_COLUMN_MISMATCH",
        hint="Add the field to the column, or change the schema.",
        parameters={"column": path, "wanted": wanted, "found": "no such field"},
    )


def _no_fit(path: str, found: str, wanted: pa.DataType) -> SchemaError:
    return SchemaError(
        f"Field '{path}' is wanted as {wanted}, and is {found} in the schema of the values.",
        condition="SCHEMA_COLUMN_MISMATCH",
        hint="Correct the schema that the values are read with.",
        parameters={"column": path, "found": found, "wanted": wanted},
    )
