"""The text of a `.proto` file without custom options."""

from __future__ import annotations

import pytest

from pyspark_kafka._typed.codecs.protobuf.proto_text import without_custom_options


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int64 a = 1;", "int64 a = 1;"),
        ("int64 a = 1 [(v.f).int64.gt = 0];", "int64 a = 1 ;"),
        (
            "int64 a = 1 [deprecated = true, (v.f) = 1, packed = true];",
            "int64 a = 1 [deprecated = true, packed = true];",
        ),
        ("int64 a = 1 [(v.f) = {in: [1, 2], s: \"],;\"}, json_name = 'b'];", "int64 a = 1 [ json_name = 'b'];"),
        ("string a = 1 [default = \"] (x)\", (v) = 'x'];", 'string a = 1 [default = "] (x)"];'),
        ("A = 0 [ /* [ */ (v) = 1 // ]\n];", "A = 0 ;"),
        ("option (v.m) = {a: 1; b: {c: 2}}; int64 a = 1;", " int64 a = 1;"),
        ("message M { option (v) = 'x;'; option deprecated = true; }", "message M {  option deprecated = true; }"),
        ('rpc A(B) returns (C) { option (google.api.http) = { get: "/v1/{name}" }; }', "rpc A(B) returns (C) {  }"),
        ('option java_package = "a;b"; // option (x) = 1;', 'option java_package = "a;b"; // option (x) = 1;'),
        # A field may have the name of the word, and a comment a quote.
        ("Kind option = 1; // don't\nint64 b = 2 [(v) = 1];", "Kind option = 1; // don't\nint64 b = 2 ;"),
        ("extensions 4 to 9 [(v) = {declaration: <a: 1>}];", "extensions 4 to 9 ;"),
        # Text that no compiler takes is left as it can be.
        ("int64 a = 1 [(v", "int64 a = 1 "),
        ("option (v", ""),
        ('int64 a = 1 [(v) = "x', "int64 a = 1 "),
        # Of hostile text, in a time that is in proportion to it.
        *((text * (1 << 16), text * (1 << 16)) for text in ("/*/ ", '\\"', "'\\\\")),
    ],
    ids=lambda text: text[:40],
)
def test_custom_options_are_left_out_and_nothing_else(text: str, expected: str) -> None:
    assert without_custom_options(text) == expected
