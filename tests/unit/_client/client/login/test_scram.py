"""SCRAM: the example of the RFC, what a hostile server may not do, and delegation tokens."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import pytest

from kit.costs import processor_s
from pyspark_kafka._client.client.login.mechanism import ExchangeError
from pyspark_kafka._client.client.login.scram import MAX_ITERATIONS, ScramMechanism, escape_name
from pyspark_kafka._client.options import ScramLogin, Secret

# RFC 7677, chapter 3.
RFC_NONCE = "rOprNGfwEbeRWgbNEkqO"
RFC_SERVER_NONCE = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
RFC_FIRST = f"r={RFC_SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
RFC_FINAL = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
NONCE = "client"
PASSWORD = "pencil"  # noqa: S105 - of the RFC


def machine(
    username: str = "user", password: str = PASSWORD, mechanism: str = "SCRAM-SHA-256", **changes: Any
) -> ScramMechanism:
    login = ScramLogin(username, Secret(password), mechanism, **changes)
    return ScramMechanism(login, nonce=RFC_NONCE)


def rejected(made: ScramMechanism, message: str | bytes) -> ExchangeError:
    with pytest.raises(ExchangeError) as caught:
        made.receive(message if isinstance(message, bytes) else message.encode())
    assert PASSWORD not in str(caught.value)
    assert not made.is_authenticated()
    return caught.value


def test_exchange_is_the_one_of_the_rfc() -> None:
    made = machine()
    assert made.auth_bytes() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    made.receive(RFC_FIRST.encode())
    assert not made.is_done()
    assert made.auth_bytes().decode() == (f"c=biws,r={RFC_SERVER_NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    made.receive(RFC_FINAL.encode())
    assert made.is_done()
    assert made.is_authenticated()


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("username", ["ann", "a=b,c", "Jürgen", "\u1e9b\u0323"])
def test_names_and_passwords_are_not_normalized(mechanism: str, username: str) -> None:
    # A server as Kafka's: it has salted the UTF-8 bytes of the password.
    password = "Pa\u00dfw\u0308ort,=\u2168"  # noqa: S105 - of this test
    made = machine(username, password, mechanism)
    bare = made.auth_bytes().decode().removeprefix("n,,")
    assert bare == f"n={username.replace('=', '=3D').replace(',', '=2C')},r={RFC_NONCE}"
    first = f"r={RFC_NONCE}xyz,s={base64.b64encode(b'salt').decode()},i=5000"
    made.receive(first.encode())
    algorithm = mechanism.removeprefix("SCRAM-").replace("SHA-", "sha")
    salted = hashlib.pbkdf2_hmac(algorithm, password.encode(), b"salt", 5000)
    without_proof, _, proof = made.auth_bytes().decode().partition(",p=")
    message = f"{bare},{first},{without_proof}".encode()
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    signature = hmac.digest(hashlib.new(algorithm, client_key).digest(), message, algorithm)
    assert base64.b64decode(proof) == bytes(x ^ y for x, y in zip(client_key, signature, strict=True))
    answer = hmac.digest(hmac.digest(salted, b"Server Key", algorithm), message, algorithm)
    made.receive(b"v=" + base64.b64encode(answer))
    assert made.is_authenticated()


def test_a_delegation_token_is_said_in_the_first_message() -> None:
    assert machine(delegation_token=True).auth_bytes().decode().endswith(f",r={RFC_NONCE},tokenauth=true")
    assert "delegation token" in machine(delegation_token=True).refusal().hint


def test_nonces_differ_between_exchanges() -> None:
    login = ScramLogin("u", Secret("p"), "SCRAM-SHA-256")
    sent = {ScramMechanism(login).auth_bytes() for _ in range(20)}
    assert len(sent) == 20
    assert all(len(each) >= 30 for each in sent)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("", "first message is malformed"),
        (b"\xff\xfe", "not UTF-8"),
        ("r=" + "x" * 9000, "has 9002 bytes, more than 8192"),
        (f"m=tls,{RFC_FIRST}", "an extension of SCRAM that no Kafka client has"),
        (RFC_FIRST.replace("r=rOpr", "r=other"), "nonce does not begin with the client's"),
        (f"r={RFC_NONCE},s=c2FsdA==,i=4096", "or adds nothing to it"),
        (RFC_FIRST.replace("i=4096", "i=4095"), "asks for 4095 iterations"),
        (RFC_FIRST.replace("i=4096", "i=1"), "asks for 1 iterations"),
        (RFC_FIRST.replace("i=4096", "i=100001"), "asks for 100001 iterations; 4096 to 100000 are accepted"),
        (RFC_FIRST.replace("i=4096", "i=9999999999"), "asks for 9999999999 iterations"),
        (RFC_FIRST.replace("i=4096", "i=99999999999"), "first message is malformed"),
        (RFC_FIRST.replace("i=4096", "i=-4096"), "first message is malformed"),
        (RFC_FIRST.replace("i=4096", "i=04096"), "first message is malformed"),
        (RFC_FIRST.replace("i=4096", "i=٤٠٩٦"), "first message is malformed"),
        (RFC_FIRST.replace("s=W22Z", "s=W22 Z"), "first message is malformed"),
        (RFC_FIRST.replace("gQ==", "g==="), "first message is malformed"),
        (RFC_FIRST.replace("gQ==", "gQ="), "malformed base64"),
        (RFC_FIRST.replace(",s=", ",x=1,s="), "first message is malformed"),
        (RFC_FIRST + ",junk", "first message is malformed"),
        (RFC_FINAL, "first message is malformed"),
    ],
)
def test_a_first_message_that_breaks_the_rules_is_refused(message: str | bytes, reason: str) -> None:
    assert reason in str(rejected(machine(), message))
    # It does not compute what it is asked for.
    assert processor_s(lambda: rejected(machine(), message)) < 1


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("", "final message is malformed"),
        ("v=", "final message is malformed"),
        ("v=AAAA", "signature is wrong"),
        (RFC_FINAL.replace("6rri", "6rrj"), "signature is wrong"),
        (RFC_FINAL.replace("G4=", "G4"), "malformed base64"),
        (RFC_FIRST, "final message is malformed"),
    ],
)
def test_a_server_that_does_not_know_the_password_is_not_trusted(message: str, reason: str) -> None:
    made = machine()
    made.receive(RFC_FIRST.encode())
    assert reason in str(rejected(made, message))


@pytest.mark.parametrize("step", [1, 2])
def test_an_error_of_the_server_is_a_refusal(step: int) -> None:
    made = machine()
    if step == 2:
        made.receive(RFC_FIRST.encode())
    error = rejected(made, "e=invalid-proof\x1b[2J")
    assert error.is_refusal
    assert str(error) == 'the server answered "invalid-proof\\x1b[2J"'


def test_extensions_of_a_server_are_ignored() -> None:
    made = machine()
    made.receive(f"{RFC_FIRST},x=1,ext=a=b".encode())
    assert made.auth_bytes().startswith(b"c=biws,r=")


def test_the_most_iterations_take_less_than_a_second() -> None:
    message = RFC_FIRST.replace("i=4096", f"i={MAX_ITERATIONS}").encode()
    assert processor_s(lambda: machine(mechanism="SCRAM-SHA-512").receive(message)) < 1


def test_a_refusal_names_what_brokers_have_for_each_mechanism() -> None:
    refusal = machine().refusal()
    assert refusal.known == ""
    assert not refusal.is_retriable
    assert "kafka-configs --describe --entity-type users" in refusal.hint
    assert "(now 'SCRAM-SHA-256')" in refusal.hint


def test_escaped_names_are_those_of_javas_client() -> None:
    assert escape_name("=2C,") == "=3D2C=2C"
