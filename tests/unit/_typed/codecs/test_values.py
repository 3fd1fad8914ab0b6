"""Times that no column holds."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
from google.protobuf import message_factory

from kit.protobuf_schema import everything
from pyspark_kafka._typed.codecs.json.decoding import JsonDecoder
from pyspark_kafka._typed.codecs.protobuf.decoding import ProtobufDecoder
from pyspark_kafka._typed.codecs.protobuf.descriptors import find_message
from pyspark_kafka._typed.codecs.protobuf.proto_text import read_file_set
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema
from pyspark_kafka._typed.codecs.values import BadValue, Reason

TIME = pa.timestamp("us", "UTC")


def test_times_beyond_64_bits_are_bad_wherever_they_stand_in_json() -> None:
    kind = pa.struct(
        [
            ("t", TIME),
            ("s", pa.struct([("t", TIME)])),
            ("l", pa.list_(pa.struct([("t", TIME)]))),
            ("m", pa.map_(pa.string(), pa.list_(TIME))),
        ]
    )
    texts = [
        b'{"t":1,"m":{"a":[1]}}',
        b'{"t":1e30}',
        b'{"s":{"t":-1e30}}',
        None,
        b'{"l":[null,{"t":1}]}',
        b'{"l":[{"t":1},{"t":1e30}],"m":{"a":[1e30]}}',
        b'{"m":{"a":[1],"b":[2,1e30]}}',
        b'{"m":{"a":[]}}',
        b"{",
    ]
    found = JsonDecoder(kind).decode(pa.array(texts, pa.binary()))
    found.column.validate(full=True)
    assert [(each.row, each.message) for each in found.bad] == [
        (1, "the time of field 't' is out of range"),
        (2, "the time of field 's.t' is out of range"),
        (5, "the time of field 'l.t' is out of range"),
        (6, "the time of field 'm' is out of range"),
        (8, "it ends in the middle of a document"),
    ]
    assert [row for row in range(9) if not found.column[row].is_valid] == [1, 2, 3, 5, 6, 8]


def test_times_beyond_64_bits_are_bad_in_protobuf() -> None:
    descriptor, message = everything()
    texts = []
    for seconds in (0, 9223372036855, 253402300799, -9223372036855):
        value = message()
        value.at.seconds = seconds
        texts.append(value.SerializeToString())
    found = ProtobufDecoder(descriptor).decode(pa.array([*texts, None], pa.binary()))
    reason = "the time of field 'at' is out of range"
    assert found.bad == [BadValue(1, Reason.TYPE_MISMATCH, reason), BadValue(3, Reason.TYPE_MISMATCH, reason)]
    assert found.column.is_valid().to_pylist() == [True, False, True, False, False]


def test_durations_beyond_64_bits_are_bad_in_protobuf() -> None:
    text = """
    syntax = "proto3"; import "google/protobuf/duration.proto";
    message M { google.protobuf.Duration d = 1; repeated google.protobuf.Duration l = 2; }
    """
    descriptor = find_message(read_file_set(RegisteredSchema("PROTOBUF", text)))
    made = message_factory.GetMessageClass(descriptor)
    # The longest that Google's rules allow, which is a column's too, and others.
    longest = {"seconds": 315_576_000_000, "nanos": 999_999_999}
    given = [made(d=longest), made(d={"seconds": 10**15}), made(l=[longest, {"seconds": -(10**15)}]), made()]
    found = ProtobufDecoder(descriptor).decode(pa.array([each.SerializeToString() for each in given]))
    assert found.bad == [
        BadValue(1, Reason.TYPE_MISMATCH, "the time of field 'd' is out of range"),
        BadValue(2, Reason.TYPE_MISMATCH, "the time of field 'l' is out of range"),
    ]
    assert found.column.is_valid().to_pylist() == [True, False, False, True]
    assert found.column[0].as_py()["d"] == dt.timedelta(seconds=315_576_000_000, microseconds=999_999)
