"""Arrays of values in parts that fit into memory. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka.errors import RecordError


def split_by_size(values: pa.Array, max_bytes: int) -> Iterator[tuple[int, pa.Array]]:
    """Yield slices of a byte array, each with its first row.

    Args:
        values: of any type of strings or bytes.
        max_bytes: the maximum size of a slice; a single value may be larger.
    """
    start = 0
    while start < len(values):
        count = len(values) - start
        while count > 1 and (pc.sum(pc.binary_length(values.slice(start, count))).as_py() or 0) > max_bytes:
            count = (count + 1) // 2
        yield start, values.slice(start, count)
        start += count


def concat_parts(parts: list[pa.Array], arrow_type: pa.DataType) -> pa.Array:
    """Return parts as one array; a single part is returned unchanged.

    Raises:
        RecordError: a column would pass 2 GiB of text or bytes.
    """
    if len(parts) == 1:
        return parts[0]
    try:
        return pa.concat_arrays(parts) if parts else pa.array([], arrow_type)
    except pa.ArrowInvalid as error:
        values = sum(map(len, parts))
        raise RecordError(
            f"{values} values have a column of more than 2 GiB, which no Arrow array holds. None was read.",
            condition="VALUES_TOO_LARGE",
            hint="Read fewer fields of them, or decode fewer values at a time.",
            parameters={"values": values},
        ) from error
