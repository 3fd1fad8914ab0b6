"""Values that other programs wrote: Java's serializers, Apicurio's, AWS Glue's, Confluent's in Python.

The JSON beside the values is what each was told to write; see tools/make_format_fixtures.py.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from kit.golden_formats import NAMES, GoldenFile, KnownSchemas, plain
from pyspark_kafka._typed.codecs.column_decoder import ColumnDecoder
from pyspark_kafka._typed.codecs.column_encoder import ColumnEncoder
from pyspark_kafka._typed.codecs.column_format import ColumnFormat


@pytest.mark.usefixtures("avro_variant")
@pytest.mark.parametrize("name", NAMES)
def test_values_of_other_programs_are_read(name: str) -> None:
    file = GoldenFile.read(name)
    column = file.column()
    decoder = ColumnDecoder(column, KnownSchemas(file.schemas))
    found = decoder.decode(file.values(), file.headers())
    found.column.validate(full=True)
    assert found.bad == []
    assert [plain(row, column.arrow_type) for row in found.column.to_pylist()] == file.rows
    ids = {str(each.schema_id) for each in file.schemas}
    if file.framing == "none":
        assert found.schema_ids is None
    else:
        assert found.schema_ids is not None
        assert set(found.schema_ids.to_pylist()) == ids


@pytest.mark.parametrize("name", NAMES)
def test_values_of_other_programs_between_bad_ones_are_read(name: str) -> None:
    file = GoldenFile.read(name)
    column = file.column()
    good, headers = file.values().to_pylist(), file.headers().to_pylist()
    # Cut short by a byte; a value in Protobuf may end there.
    values = [value for each in good for value in (each[:-1], each, None, b"\xff\xff\xff")]
    found = ColumnDecoder(column, KnownSchemas(file.schemas)).decode(
        pa.array(values, pa.binary()), pa.array([each for each in headers for _ in range(4)], file.headers().type)
    )
    found.column.validate(full=True)
    rows = [plain(row, column.arrow_type) for row in found.column.to_pylist()]
    assert rows[1::4] == file.rows
    assert rows[2::4] == rows[3::4] == [None] * len(good)
    bad = [each.row for each in found.bad]
    assert set(range(3, len(values), 4)) <= set(bad) <= {row for row in range(len(values)) if row % 4 in (0, 3)}


@pytest.mark.usefixtures("avro_variant")
@pytest.mark.parametrize("name", [name for name in NAMES if "protobuf" in name or "avro-1" in name or "glue" in name])
def test_values_that_are_written_are_those_of_the_other_program(name: str) -> None:
    """Both formats say how each value is written, but for the order of the entries of a map in Protobuf."""
    file = GoldenFile.read(name)
    column = file.column()
    framing = column.framing
    # Zlib is another program's choice.
    values = file.values()
    read = ColumnDecoder(column, KnownSchemas(file.schemas)).decode(values, file.headers()).column
    encoder = ColumnEncoder(ColumnFormat(column.format, framing, column.arrow_type, column.schema, column.message))
    written = encoder.encode(read)
    if file.format == "protobuf" or "zlib" in name:
        again = ColumnDecoder(column, KnownSchemas(file.schemas)).decode(written, file.headers())
        assert again.bad == []
        assert again.column == read
        if "zlib" not in name:
            assert [len(each) for each in written.to_pylist()] == [len(each) for each in values.to_pylist()]
    else:
        assert written == values
