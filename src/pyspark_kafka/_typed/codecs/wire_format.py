"""The wire formats: the writer schema's id before a value.

The bytes do not show which wire format a topic has, as five zeros may begin a value of each kind: users set it.
"""

from __future__ import annotations

import uuid
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka._typed.codecs.bounds import FREE_INFLATED, INFLATED_PER_BYTE, SizeBudget
from pyspark_kafka._typed.codecs.values import BadValue, Reason
from pyspark_kafka.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka._typed.codecs.schemas import SchemaId

# Confluent: a zero byte, and the number of the schema, big end first.
_CONFLUENT_SIZE = 5
# Glue: a version, how the value is compressed, and the id.
_GLUE_VERSION = 3
_PLAIN, _ZLIB = 0, 5
_GLUE_SIZE = 18
# A value of 1 MB can become 1 GB.
_MAX_INFLATED = 32 << 20
_TOO_LARGE = (
    f"it inflates to more than {_MAX_INFLATED >> 20} MiB, or than {INFLATED_PER_BYTE} bytes for each of its own and "
    f"the {FREE_INFLATED >> 20} MiB more that all values of a batch may have together"
)
# Confluent's serializers since 8.0 can put the id into a header of the record: an id of 16 bytes, or one of four.
HEADER_FRAMINGS = frozenset({"confluentHeader", "confluentDual"})
KEY_HEADER, VALUE_HEADER = "__key_schema_id", "__value_schema_id"


def confluent_prefix(schema_id: int) -> bytes:
    """Return the prefix of a value by Confluent's serializers, and Apicurio's since version 3.

    Raises:
        SchemaError: the number of the schema has more than 4 bytes.

    Example:
        >>> confluent_prefix(7).hex()
        '0000000007'
    """
    try:
        return b"\x00" + schema_id.to_bytes(4, "big", signed=True)
    except OverflowError as error:
        raise SchemaError(
            f"Wire format confluent has 4 bytes for the id of a schema, too few for {schema_id}. Nothing was written.",
            condition="SCHEMA_INVALID",
            hint="Use the id that the registry has for the schema.",
            parameters={"framing": "confluent", "id": schema_id},
        ) from error


@dataclass(frozen=True, slots=True)
class FramedValues:
    """Values, and the schema of each.

    Attributes:
        values: of type binary or large_binary; a bad one may be anything.
        skipped: bytes at the beginning of each value that are not part of it.
        ids: the schemas that there are.
        tails: what follows the id in a header, for each of `ids`; empty for ids that stand before the value.
        places: the place in `ids` for each row, 32-bit; -1 for rows without a value, and for bad ones.
        bad: the values without an id, in the order of their rows.
        framing: what stands before the values.
    """

    values: pa.Array
    skipped: int
    ids: list[SchemaId]
    tails: list[bytes]
    places: Any
    bad: list[BadValue]
    framing: str

    def id_texts(self) -> pa.Array:
        """Return the id of each row as text, null where there is none."""
        texts = pa.array([str(each) for each in self.ids], pa.string())
        if len(self.ids) == 1 and len(self.places) and self.places.min() >= 0:
            return pa.repeat(texts[0], len(self.places))
        return texts.take(pa.array(self.places, mask=self.places < 0))


def read_wire_format(
    values: pa.Array, framing: str, headers: pa.Array | None = None, *, is_key: bool = False
) -> FramedValues:
    """Read the schema id of each value.

    Runs on: executor; pure computation, of a fixed number of passes where nothing is bad or compressed.

    Args:
        values: of type binary or large_binary; nulls have no id and are not bad.
        framing: `confluent`, `glue` or `confluentHeader`.
        headers: of the records, as the source has them; `confluentHeader` needs them. The last header of the name
            counts, and a record without one is bad: what its value begins with is not looked at.
        is_key: whether the values are keys, which have a header of their own.

    Source: Confluent's "Wire format"; the AWS Glue Schema Registry library, `GlueSchemaRegistrySerializerImpl`.
    """
    if framing == "confluentHeader":
        if headers is None:
            raise ValueError("the framing confluentHeader needs the headers of the records")
        return _read_headers(values, headers, KEY_HEADER if is_key else VALUE_HEADER)
    if framing == "glue":
        return _read_glue(values)
    return _read_numbers(values)


def have_id_header(headers: pa.Array, *, is_key: bool) -> Any:
    """Return for each record whether it has the header of its schema, whatever that holds."""
    wanted = pc.equal(pc.struct_field(pc.list_flatten(headers), "key"), KEY_HEADER if is_key else VALUE_HEADER)
    found = np.zeros(len(headers), bool)
    found[np.asarray(pc.list_parent_indices(headers).filter(wanted))] = True
    return found


def _read_numbers(values: pa.Array) -> FramedValues:
    sizes, heads = _heads(values, _CONFLUENT_SIZE)
    bad = _too_short(values, sizes, _CONFLUENT_SIZE)
    good = sizes >= _CONFLUENT_SIZE
    marked = heads[:, 0] == 0
    if not marked.all():
        bad += [
            BadValue(row, Reason.INVALID_MAGIC_BYTE, f"it begins with the byte {heads[row, 0]}, not with 0")
            for row in np.nonzero(good & ~marked)[0].tolist()
        ]
        good &= marked
    ids, places = _distinct(heads[:, 1:], good, lambda raw: int.from_bytes(raw, "big", signed=True))
    return FramedValues(values, _CONFLUENT_SIZE, ids, [b""] * len(ids), places, _in_order(bad), "confluent")


def _read_glue(values: pa.Array) -> FramedValues:
    sizes, heads = _heads(values, _GLUE_SIZE)
    bad = _too_short(values, sizes, _GLUE_SIZE)
    good = sizes >= _GLUE_SIZE
    for at, known, what in ((0, (_GLUE_VERSION,), "begins with"), (1, (_PLAIN, _ZLIB), "names the compression")):
        right = np.isin(heads[:, at], known)
        bad += [
            BadValue(row, Reason.INVALID_MAGIC_BYTE, f"it {what} {heads[row, at]}, not {' or '.join(map(str, known))}")
            for row in np.nonzero(good & ~right)[0].tolist()
        ]
        good &= right
    compressed = good & (heads[:, 1] == _ZLIB)
    skipped = _GLUE_SIZE
    if compressed.any():
        values, skipped = _inflate(values, compressed, good, bad), 0
    ids, places = _distinct(heads[:, 2:], good, lambda raw: str(uuid.UUID(bytes=raw)))
    return FramedValues(values, skipped, ids, [b""] * len(ids), places, _in_order(bad), "glue")


def _inflate(values: pa.Array, compressed: Any, good: Any, bad: list[BadValue]) -> pa.Array:
    """Return all values without their prefixes, and decompressed."""
    inflated: list[bytes | None] = []
    budget = SizeBudget(INFLATED_PER_BYTE, FREE_INFLATED)
    for row, value in enumerate(values.to_pylist()):
        found = None if value is None or not good[row] else value[_GLUE_SIZE:]
        if found is not None and compressed[row]:
            stream = zlib.decompressobj()
            message = ""
            try:
                max_size = min(_MAX_INFLATED, budget.free + budget.per_byte * len(value))
                found = stream.decompress(found, max_size)
                if not stream.eof:
                    message = _TOO_LARGE if len(found) == max_size else "what is compressed ends early"
                else:
                    budget.take_excess(len(found), len(value))
            except zlib.error:
                message = "it cannot be inflated"
            if message or stream.unused_data:
                bad.append(BadValue(row, Reason.DECODE_FAILED, message or "bytes follow what is compressed"))
                good[row] = False
                found = None
        inflated.append(found)
    return pa.array(inflated, pa.large_binary())


def _read_headers(values: pa.Array, headers: pa.Array, name: str) -> FramedValues:
    flat = pc.list_flatten(headers)
    wanted = pc.equal(pc.struct_field(flat, "key"), name)
    rows = np.asarray(pc.list_parent_indices(headers).filter(wanted))
    found = pc.struct_field(flat, "value").filter(wanted).cast(pa.binary()).dictionary_encode()
    numbers = np.asarray(found.indices.fill_null(-1))
    # The last header with a name is written last, and stays.
    of_row = np.full(len(values), -2, np.int32)
    of_row[rows] = numbers
    present = np.asarray(values.is_valid()) if values.null_count else np.ones(len(values), bool)
    of_row[~present] = -2
    bad = [
        BadValue(row, Reason.INCOMPLETE_HEADER, f"its record has no header '{name}'")
        for row in np.nonzero(present & (of_row == -2))[0].tolist()
    ]
    ids: list[SchemaId] = []
    tails: list[bytes] = []
    # One more, at the end: the place of a null header.
    places = np.full(len(found.dictionary) + 2, -1, np.int32)
    faults: dict[int, BadValue] = {-1: BadValue(0, Reason.INCOMPLETE_HEADER, f"its header '{name}' is null")}
    for number, raw in enumerate(found.dictionary.to_pylist()):
        read = _read_header(raw)
        if isinstance(read, tuple):
            places[number] = len(ids)
            ids.append(read[0])
            tails.append(read[1])
        else:
            faults[number] = read
    for row in np.nonzero(present & (of_row != -2) & (places[of_row] < 0))[0].tolist():
        fault = faults[int(of_row[row])]
        bad.append(BadValue(row, fault.reason, fault.message))
    return FramedValues(values, 0, ids, tails, places[of_row], _in_order(bad), "confluentHeader")


def _read_header(raw: bytes) -> tuple[SchemaId, bytes] | BadValue:
    sizes = {0: _CONFLUENT_SIZE, 1: 17}
    if not raw:
        return BadValue(0, Reason.INCOMPLETE_HEADER, "the header with its schema is empty")
    size = sizes.get(raw[0])
    if size is None:
        return BadValue(
            0, Reason.INVALID_MAGIC_BYTE, f"the header with its schema begins with the byte {raw[0]}, not with 0 or 1"
        )
    if len(raw) < size:
        return BadValue(
            0, Reason.INCOMPLETE_HEADER, f"the header with its schema has {len(raw)} bytes, fewer than {size}"
        )
    if raw[0] == 0:
        return int.from_bytes(raw[1:size], "big", signed=True), raw[size:]
    return str(uuid.UUID(bytes=raw[1:size])), raw[size:]


def _heads(values: pa.Array, size: int) -> tuple[Any, Any]:
    """Return the size of each value, -1 where there is none, and its first bytes; of short ones they mean nothing."""
    sizes = np.asarray(pc.binary_length(values).fill_null(-1))
    long_enough = sizes >= size
    chosen = values if long_enough.all() else values.filter(pa.array(long_enough))
    cut = pc.binary_slice(chosen, 0, size).cast(pa.large_binary())
    if len(cut) == 0:
        return sizes, np.zeros((len(values), size), np.uint8)
    _, offsets, data = cut.buffers()
    begin = np.frombuffer(offsets, np.int64)[cut.offset]
    found = np.frombuffer(data, np.uint8)[begin : begin + size * len(cut)].reshape(len(cut), size)
    if len(cut) == len(values):
        return sizes, found
    heads = np.zeros((len(values), size), np.uint8)
    heads[long_enough] = found
    return sizes, heads


def _too_short(values: pa.Array, sizes: Any, size: int) -> list[BadValue]:
    if not len(values) or sizes.min() >= size:
        return []
    return [
        BadValue(row, Reason.INCOMPLETE_HEADER, f"it has {sizes[row]} bytes, fewer than the {size} before a value")
        for row in np.nonzero((sizes >= 0) & (sizes < size))[0].tolist()
    ]


def _distinct(raw: Any, good: Any, read: Callable[[bytes], SchemaId]) -> tuple[list[SchemaId], Any]:
    """Return the ids of the good rows, each once, and the place of each row among them."""
    places = np.full(len(good), -1, np.int32)
    rows = np.nonzero(good)[0]
    if not len(rows):
        return [], places
    first = raw[rows[0]]
    if all((raw[:, at] == each).all() for at, each in enumerate(first)):
        places[rows] = 0
        return [read(first.tobytes())], places
    chosen = np.ascontiguousarray(raw[rows])
    kind = pa.binary(chosen.shape[1])
    found = pa.Array.from_buffers(kind, len(rows), [None, pa.py_buffer(chosen)]).dictionary_encode()
    places[rows] = np.asarray(found.indices)
    return [read(each) for each in found.dictionary.to_pylist()], places


def _in_order(bad: list[BadValue]) -> list[BadValue]:
    return sorted(bad, key=lambda each: each.row)
