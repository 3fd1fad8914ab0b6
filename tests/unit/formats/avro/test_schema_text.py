"""The text of a schema: JSON, a name, and what may stand beside them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pyspark_kafka.formats.avro.schema_text import load_schema_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("long", "long"),
        (" shop.Order\n", "shop.Order"),
        ('\ufeff{"type": "long"}', {"type": "long"}),
        ("\ufefflong", "long"),
        ('// of orders\n{"type": /* 64 bits */ "long"}', {"type": "long"}),
        ('/** "a" */ ["null", "long"] // the end', ["null", "long"]),
        ('{"doc": "http://a /* b */ \\" // c"} // d', {"doc": 'http://a /* b */ " // c'}),
    ],
)
def test_text_is_read_with_comments_and_a_mark(text: str, expected: Any) -> None:
    assert load_schema_text(text) == expected


@pytest.mark.parametrize("text", ["", "shop order", "<avro secret='x'/>", "5", "\ufeff", "s3cr3t:word"])
def test_text_that_is_neither_json_nor_a_name_is_not_repeated(text: str) -> None:
    with pytest.raises(ValueError, match=r"^it is neither JSON nor the name of a type$"):
        load_schema_text(text)


def test_error_behind_a_comment_has_its_own_place() -> None:
    with pytest.raises(json.JSONDecodeError) as caught:
        load_schema_text('/* a\n b */ {"type" "long"}')
    assert (caught.value.lineno, caught.value.colno) == (2, 15)


@pytest.mark.parametrize("part", ["/*", '"', '"/*', "//", '\\"'])
def test_comments_and_strings_without_an_end_are_searched_once(part: str) -> None:
    """A search from each beginning to the end of the text would take minutes."""
    with pytest.raises(json.JSONDecodeError):
        load_schema_text("{" + part * 300_000)
