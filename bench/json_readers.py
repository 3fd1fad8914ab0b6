"""Readers of JSON that wheels have, on the same values: what `bench/decoders.py` compares arrow-json with."""

from __future__ import annotations

import io
from functools import partial
from typing import TYPE_CHECKING, Any

import arro3.io
import duckdb
import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# As the decoder: all of a chunk stays in the caches of a core.
_CHUNK = 1024
_DUCKDB_NAMES = {"string": "VARCHAR", "int64": "BIGINT", "int32": "INTEGER", "double": "DOUBLE", "bool": "BOOLEAN"}


class JsonReaders:
    """Reads the same values with each library, on one core and unchecked, into columns of given types.

    Maps are left out, because Polars and pyarrow do not read them. Times remain texts.

    Args:
        columns: the types of the values.
        values: the values.
    """

    def __init__(self, columns: pa.StructType, values: Sequence[bytes]) -> None:
        """Prepare the values for each library."""
        fields = [_without_time(each) for each in columns if not pa.types.is_map(each.type)]
        self._columns = pa.struct(fields)
        self._schema = pa.schema(fields)
        names = set(self._schema.names)
        given = [msgspec.json.decode(each) for each in values]
        kept = [msgspec.json.encode({name: row[name] for name in row.keys() & names}) for row in given]
        self._chunks = [kept[at : at + _CHUNK] for at in range(0, len(kept), _CHUNK)]

    def works(self) -> dict[str, Callable[[], object]]:
        """Return a function for each library, which reads all values."""
        lines = [b"\n".join(each) for each in self._chunks]
        texts = [[value.decode() for value in each] for each in self._chunks]
        reads: dict[str, list[Callable[[], Any]]] = {
            "arrow-json": [partial(self._arrow_json, each) for each in lines],
            "polars": [partial(pl.Series(each).str.json_decode, self._of_polars()) for each in texts],
            "duckdb": [self._duckdb(each) for each in texts],
            "pyarrow.json": [partial(self._pyarrow, each) for each in lines],
        }
        expected = [len(each) for each in self._chunks]
        for name, of_chunks in reads.items():
            if [len(read()) for read in of_chunks] != expected:
                raise RuntimeError(f"{name}: values are missing")
        return {name: partial(_call_all, of_chunks) for name, of_chunks in reads.items()}

    def _arrow_json(self, lines: bytes) -> Any:
        read = arro3.io.read_json(io.BytesIO(lines), self._schema, batch_size=_CHUNK)
        return pa.RecordBatchReader.from_stream(read).read_all()

    def _pyarrow(self, lines: bytes) -> Any:
        parse = pyarrow.json.ParseOptions(explicit_schema=self._schema, unexpected_field_behavior="ignore")
        return pyarrow.json.read_json(io.BytesIO(lines), pyarrow.json.ReadOptions(use_threads=False), parse)

    def _of_polars(self) -> Any:
        return pl.from_arrow(pa.table({"value": pa.nulls(0, self._columns)})).schema["value"]

    def _duckdb(self, texts: Sequence[str]) -> Callable[[], Any]:
        connection = duckdb.connect()
        connection.execute("SET threads = 1")
        connection.register("given", pa.table({"text": texts}))
        structure = msgspec.json.encode(_in_duckdb(self._columns)).decode()
        query = f"SELECT json_transform_strict(text, '{structure}') FROM given"  # noqa: S608 - no text from elsewhere
        return lambda: connection.sql(query).to_arrow_table()


def _call_all(reads: Sequence[Callable[[], object]]) -> None:
    for read in reads:
        read()


def _without_time(field: pa.Field) -> pa.Field:
    return field.with_type(pa.string()) if pa.types.is_timestamp(field.type) else field


def _in_duckdb(kind: pa.DataType) -> Any:
    """Return a type as `json_transform` takes it."""
    if pa.types.is_struct(kind):
        return {each.name: _in_duckdb(each.type) for each in kind}
    return [_in_duckdb(kind.value_type)] if pa.types.is_list(kind) else _DUCKDB_NAMES[str(kind)]
