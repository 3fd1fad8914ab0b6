"""Errors of SASL: what the listener offers, and which option to change."""

from __future__ import annotations

import pytest

from kit.texts import said
from pyspark_kafka._client.client.login.errors import credentials_refused, exchange_failed, handshake_refused
from pyspark_kafka._client.client.login.plain import PlainMechanism
from pyspark_kafka._client.options import PlainLogin, Secret
from pyspark_kafka.errors import AccessError

WHERE = "SASL authentication (PLAIN) at b:1"


def handshake(offered: list[str], code: int = 33, mechanism: str = "PLAIN") -> str:
    return said(handshake_refused(code, WHERE, mechanism, offered, broker="b:1"))


def test_another_mechanism_is_named_with_its_login_module() -> None:
    assert handshake(["SCRAM-SHA-256", "SCRAM-SHA-512", "X-OWN"]) == (
        "[UNSUPPORTED_SASL_MECHANISM] SASL authentication (PLAIN) at b:1 failed: the broker answered "
        'UNSUPPORTED_SASL_MECHANISM (33). The broker said: "enabled mechanisms: SCRAM-SHA-256, SCRAM-SHA-512, X-OWN". '
        "Hint: Set kafka.sasl.mechanism to SCRAM-SHA-256 or SCRAM-SHA-512 (now 'PLAIN'), and kafka.sasl.jaas.config to "
        "its login module: org.apache.kafka.common.security.scram.ScramLoginModule."
    )


@pytest.mark.parametrize(
    ("mechanism", "offered", "warning"),
    [
        (
            "SCRAM-SHA-512",
            "PLAIN",
            "with PLAIN the password itself goes to whoever answers there, and with SCRAM-SHA-512",
        ),
        ("GSSAPI", "OAUTHBEARER", "with OAUTHBEARER a token that others accept, too, goes to whoever answers there"),
        ("OAUTHBEARER", "PLAIN", "with PLAIN the password itself goes to whoever answers there, and with OAUTHBEARER"),
    ],
)
def test_weaker_mechanism_is_named_last_and_with_what_it_costs(mechanism: str, offered: str, warning: str) -> None:
    hint = handshake([offered], mechanism=mechanism).partition(" Hint: ")[2]
    assert hint.startswith(f"Use another listener, or have {mechanism} enabled for this one")
    assert f"Set kafka.sasl.mechanism to {offered} only if whoever runs the cluster says so: {warning}" in hint


def test_weaker_mechanism_is_not_named_beside_one_that_is_as_strong() -> None:
    hint = handshake(["PLAIN", "SCRAM-SHA-256"], mechanism="SCRAM-SHA-512").partition(" Hint: ")[2]
    assert hint.startswith("Set kafka.sasl.mechanism to SCRAM-SHA-256 (now 'SCRAM-SHA-512')")
    assert "PLAIN" not in hint


def test_a_listener_without_a_usable_mechanism_is_said() -> None:
    assert "this one has no mechanism that this connector has" in handshake(["X-OWN"])
    assert "sasl.enabled.mechanisms" in handshake([])


def test_names_of_a_hostile_listener_are_few_and_printable() -> None:
    text = handshake(["\x1b[31m" + "x" * 10_000] * 1000)
    assert "\x1b" not in text
    assert len(text) < 2_000


def test_a_listener_without_sasl_is_guessed() -> None:
    assert "probably a listener without SASL" in handshake([], 34)


def test_refused_credentials_have_the_hint_of_their_mechanism() -> None:
    machine = PlainMechanism(PlainLogin("u", Secret("hunter2")))
    error = credentials_refused(58, WHERE, machine, "bad\nlogin", broker="b:1")
    assert isinstance(error, AccessError)
    assert 'The broker said: "bad\\nlogin".' in str(error)
    assert "Hint: Check the user name and the password" in str(error)


def test_another_failure_has_the_hint_of_its_code() -> None:
    machine = PlainMechanism(PlainLogin("u", Secret("hunter2")))
    assert "listener without SASL" in str(credentials_refused(34, WHERE, machine, None, broker="b:1"))


def test_a_failed_exchange_says_why() -> None:
    assert str(exchange_failed(WHERE, "the server lies")).startswith(
        "[SASL_EXCHANGE_FAILED] SASL authentication (PLAIN) at b:1 failed: the server lies. Hint: "
    )
