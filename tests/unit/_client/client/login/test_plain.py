"""SASL PLAIN."""

from __future__ import annotations

from pyspark_kafka._client.client.login.plain import PlainMechanism
from pyspark_kafka._client.options import PlainLogin, Secret


def test_plain_sends_name_and_password_once() -> None:
    made = PlainMechanism(PlainLogin("Jürgen", Secret("pä ss")))
    assert made.auth_bytes() == b"\0J\xc3\xbcrgen\0p\xc3\xa4 ss"
    assert not made.is_done()
    made.receive(b"")
    assert made.is_done()
    assert made.is_authenticated()


def test_plain_passes_over_bytes_of_a_server_that_sends_some() -> None:
    made = PlainMechanism(PlainLogin("u", Secret("p")))
    made.receive(b"abc")
    assert made.is_authenticated()
