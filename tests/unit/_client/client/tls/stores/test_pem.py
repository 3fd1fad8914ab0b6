"""Blocks of PEM in a text."""

from __future__ import annotations

import pytest

from pyspark_kafka._client.client.tls.stores.pem import parse_pem


def test_many_beginnings_without_an_end_are_read_once() -> None:
    with pytest.raises(ValueError, match="it has 200000 BEGIN lines, but only 0 whole blocks"):
        parse_pem("-----BEGIN CERTIFICATE-----\nAAAA\n" * 200_000)


def test_block_that_ends_as_another_kind_is_damaged() -> None:
    with pytest.raises(ValueError, match="it has 2 BEGIN lines, but only 1 whole blocks"):
        parse_pem(
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END PRIVATE KEY-----\n"
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
        )
