"""Secrets are shown by no text, no error and no resolved option."""

from __future__ import annotations

import copy
import pickle
import traceback
from pathlib import Path

import pytest

from kit.raw_options import PLANTED, SASL, SECURED_READ, TLS, refused_read
from pyspark_kafka._client.options import Secret, parse_batch_read_options, parse_write_options
from pyspark_kafka._client.options.catalogue import OPTIONS


def test_a_secret_is_shown_by_nothing_but_reveal() -> None:
    secret = Secret(PLANTED)
    for shown in (repr(secret), str(secret), f"{secret}", f"{secret!r:>40}", "%s" % secret, repr([secret])):  # noqa: UP031
        assert PLANTED not in shown
    assert secret.reveal() == PLANTED
    assert pickle.loads(pickle.dumps(secret)) == secret  # noqa: S301 - our own bytes
    assert hash(secret) == hash(Secret(PLANTED))
    assert secret != Secret("x")
    assert secret != PLANTED


def test_a_secret_cannot_be_changed_and_its_copies_are_itself() -> None:
    secret = Secret(PLANTED)
    with pytest.raises(AttributeError) as caught:
        secret._text = "x"
    assert PLANTED not in str(caught.value)
    with pytest.raises(AttributeError):
        del secret._text
    assert copy.deepcopy([secret])[0] is copy.copy(secret) is secret


def test_a_secret_is_made_of_text_only() -> None:
    with pytest.raises(TypeError) as caught:
        Secret(PLANTED.encode())  # type: ignore[arg-type]
    assert PLANTED not in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "reference"),
    [
        ("env:KAFKA_PASSWORD", "env:KAFKA_PASSWORD"),
        ("env:kafka.user-1", "env:kafka.user-1"),
        ("file:/run/secrets/kafka", "file:/run/secrets/kafka"),
        ("file:///run/secrets/kafka", "file:/run/secrets/kafka"),
        ("file:kafka password.txt", "file:kafka password.txt"),
        ("call:vault.client:Kafka.password", "call:vault.client:Kafka.password"),
    ],
)
def test_a_reference_is_shown_and_is_all_that_travels(raw: str, reference: str) -> None:
    secret = Secret.parse(raw, "kafka.ssl.key.password")
    assert secret.reference == str(secret) == f"{secret}" == reference
    assert repr(secret) == f"Secret({reference!r})"
    assert pickle.loads(pickle.dumps(secret)) == secret == Secret.parse(raw)  # noqa: S301 - our own bytes
    assert hash(secret) == hash(Secret.parse(raw))
    # The text itself is another secret.
    assert secret != Secret(raw)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (PLANTED, PLANTED),
        ("", ""),
        (" spaces ", " spaces "),
        ("literal:env:HOME", "env:HOME"),
        ("literal:", ""),
        ("Env:HOME", "Env:HOME"),
        ("environment", "environment"),
        ("-----BEGIN PRIVATE KEY-----\nx", "-----BEGIN PRIVATE KEY-----\nx"),
    ],
)
def test_any_other_text_is_the_secret_itself(raw: str, value: str) -> None:
    secret = Secret.parse(raw)
    assert (secret.reference, secret.reveal()) == (None, value)
    assert secret == Secret(value)


@pytest.mark.parametrize(
    "raw",
    [f"env:{PLANTED} !", "env:", "call:", f"call:{PLANTED}", "call:a:", "file:", f"file://{PLANTED}/x", "file:a\0b"],
)
def test_a_text_that_is_no_reference_but_begins_like_one_is_refused(raw: str) -> None:
    with pytest.raises(ValueError, match="is written with 'literal:' before it") as caught:
        Secret.parse(raw)
    assert PLANTED not in str(caught.value)


def test_fingerprint_changes_with_the_value_alone(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(PLANTED)
    secret = Secret.parse(f"file:{file}")
    before = secret.fingerprint()
    assert before == secret.fingerprint() == Secret(PLANTED).fingerprint()
    file.write_text("other")
    assert secret.fingerprint() != before


def test_no_resolved_options_show_a_planted_secret() -> None:
    for raw in (SASL, TLS):
        write = {name: value for name, value in raw.items() if name != "subscribe"}
        for options in (parse_batch_read_options(raw), parse_write_options(write, streaming=True)):
            assert PLANTED not in repr(options) + str(options) + repr(options.notes)


@pytest.mark.parametrize("name", [option.name for option in OPTIONS if option.secret])
def test_no_error_shows_the_value_of_a_secret_option(name: str) -> None:
    # Every secret option beside a mistake, so that there is an error whatever becomes of the secret.
    for base in (SECURED_READ, SASL, TLS):
        error = refused_read({**base, name: PLANTED, "failOnDataLoss": "x"})
        text = "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))
        assert PLANTED not in text


@pytest.mark.parametrize("name", ["kafka.sasl.pasword", "kafka.ssl.key.pass", "password", "kafka.sasl.jaas.confg"])
def test_the_value_of_a_misspelt_option_is_not_shown(name: str) -> None:
    error = refused_read({**SECURED_READ, name: PLANTED})
    assert error.condition == "OPTION_UNKNOWN"
    assert PLANTED not in repr(error) + repr(vars(error))


def test_credentials_in_a_server_entry_are_not_shown() -> None:
    error = refused_read({**SECURED_READ, "kafka.bootstrap.servers": f"ann:{PLANTED}@b:9092"})
    assert PLANTED not in repr(error)
