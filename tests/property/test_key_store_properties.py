"""Stores of any bytes become a result or an `OptionError` that names the option, and never shows a password."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka._client.client.tls.certificates import parse_certificate
from pyspark_kafka._client.client.tls.der import DerError, max_iterations
from pyspark_kafka._client.client.tls.stores.certificate_store import KEYSTORE, TRUSTSTORE, parse_store
from pyspark_kafka._client.client.tls.stores.content import StoreError
from pyspark_kafka._client.client.tls.stores.jks import read_jks
from pyspark_kafka._client.client.tls.stores.pem import build_pem, parse_pem
from pyspark_kafka._client.options import CertificateStore, Secret
from pyspark_kafka.errors import OptionError

STORES = Path(__file__).parents[1] / "golden" / "stores"
PASSWORD = "changeit"  # noqa: S105 - of stores for tests
# The iterations of a PKCS12 store cost more than a hundred others.
CHEAP = ("truststore.jks", "client.jks", "two-keys.jks", "authority.pem", "client-certificate.pem")


@cache
def golden(name: str) -> bytes:
    return (STORES / name).read_bytes()


@st.composite
def damaged(draw: st.DrawFn, names: tuple[str, ...] = CHEAP) -> bytes:
    """Draw a store with some bytes changed, left out or put in."""
    data = bytearray(golden(draw(st.sampled_from(names))))
    for _ in range(draw(st.integers(1, 4))):
        position = draw(st.integers(0, len(data)))
        replaced = draw(st.integers(0, 8))
        data[position : position + replaced] = draw(st.binary(max_size=8))
    return bytes(data)


@given(damaged() | st.binary(max_size=300), st.sampled_from([TRUSTSTORE, KEYSTORE]), st.sampled_from([PASSWORD, None]))
def test_any_bytes_of_a_store_become_a_result_or_an_error_of_its_option(
    data: bytes, role: str, password: str | None
) -> None:
    store = CertificateStore("/store", password=None if password is None else Secret(password))
    content, refusal = None, ""
    try:
        content = parse_store(data, store, role, None)
    except OptionError as error:
        refusal = str(error)
    if content is None:
        assert f"{role}." in refusal
        assert PASSWORD not in refusal
    else:
        assert content.authorities if role == TRUSTSTORE else content.keys[0].chain


@given(st.integers(0, 2000), st.integers(1, 255))
def test_jks_store_with_one_other_byte_is_noticed(position: int, changed: int) -> None:
    data = bytearray(golden("client.jks"))
    data[position % len(data)] ^= changed
    with pytest.raises(StoreError):
        read_jks(bytes(data), PASSWORD, None, with_keys=True)


@given(st.binary(max_size=400), st.sampled_from(["\n", "\r\n", "\\n", " "]), st.sampled_from(["", "text before\n"]))
def test_pem_comes_back_whatever_its_line_ends(content: bytes, line_end: str, before: str) -> None:
    text = before + build_pem("CERTIFICATE", content).decode().replace("\n", line_end)
    (block,) = parse_pem(text)
    assert (block.label, block.content) == ("CERTIFICATE", content)


@given(st.binary(max_size=600))
def test_any_bytes_are_a_certificate_or_an_error(data: bytes) -> None:
    max_iterations(data)
    with pytest.raises(DerError):
        parse_certificate(data)


@given(damaged(("client.p12",)))
def test_iterations_of_a_damaged_store_are_found_or_none(data: bytes) -> None:
    assert max_iterations(data) >= 0
