from __future__ import annotations

import pytest

from pyspark_kafka._client.options import RegistryOptions
from pyspark_kafka._typed.registry.apicurio import guess_kind, has_core_address


@pytest.mark.parametrize(
    ("text", "content_type", "kind"),
    [
        ('syntax = "proto3";', "application/x-protobuf", "PROTOBUF"),
        ('{"type": "record", "name": "A", "fields": []}', "application/json", "AVRO"),
        ('{"type": "enum", "name": "A", "symbols": []}', "application/json", "AVRO"),
        ('{"type": "object"}', "application/json", "JSON"),
        ('{"$schema": "http://json-schema.org/draft-07/schema#"}', "application/json", "JSON"),
        ('{"type": "array", "items": "string"}', "application/json", None),
        ("[", "application/json", None),
        ("[" * 100_000, "application/json", None),
    ],
)
def test_language_of_a_text_is_guessed_only_if_it_can_be_no_other(
    text: str, content_type: str, kind: str | None
) -> None:
    assert guess_kind(text, content_type) == kind


@pytest.mark.parametrize(
    ("url", "core"),
    [
        ("http://registry/apis/registry/v2", True),
        ("https://registry:8443/some/apis/registry/v3", True),
        ("http://registry/apis/ccompat/v7", False),
        ("http://registry", False),
    ],
)
def test_address_says_which_api_it_is(url: str, core: bool) -> None:
    assert has_core_address(RegistryOptions(urls=(url,))) is core
