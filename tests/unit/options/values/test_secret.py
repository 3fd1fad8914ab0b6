"""Secrets are shown by no text, no error and no resolved option."""

from __future__ import annotations

import pickle
import traceback
from typing import Any

import pytest

from pyspark_kafka.errors import OptionError
from pyspark_kafka.options import Secret, parse_batch_read_options, parse_write_options
from pyspark_kafka.options.catalogue import OPTIONS

PLANTED = "Pl4nted-S3cret"

READ = {"kafka.bootstrap.servers": "b:9093", "subscribe": "t"}

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"

SASL = {
    **READ,
    "kafka.security.protocol": "sasl_ssl",
    "kafka.sasl.mechanism": "scram-sha-512",
    "kafka.sasl.jaas.config": f'{SCRAM} required username="ann" password="{PLANTED}";',
}

TLS = {
    **READ,
    "kafka.security.protocol": "SSL",
    "kafka.ssl.truststore.location": "/ca.pem",
    "kafka.ssl.truststore.type": "pem",
    "kafka.ssl.keystore.location": "/client.pem",
    "kafka.ssl.keystore.type": "PEM",
    "kafka.ssl.key.password": PLANTED,
}


def refused(raw: dict[str, Any]) -> OptionError:
    with pytest.raises(OptionError) as caught:
        parse_batch_read_options(raw)
    return caught.value


def test_a_secret_is_shown_by_nothing_but_reveal() -> None:
    secret = Secret(PLANTED)
    for shown in (repr(secret), str(secret), f"{secret}", f"{secret!r:>40}", "%s" % secret, repr([secret])):  # noqa: UP031
        assert PLANTED not in shown
    assert secret.reveal() == PLANTED
    assert pickle.loads(pickle.dumps(secret)) == secret  # noqa: S301 - our own bytes
    assert hash(secret) == hash(Secret(PLANTED))
    assert secret != Secret("x")
    assert secret != PLANTED


def test_no_resolved_options_show_a_planted_secret() -> None:
    for raw in (SASL, TLS):
        write = {name: value for name, value in raw.items() if name != "subscribe"}
        for options in (parse_batch_read_options(raw), parse_write_options(write, streaming=True)):
            assert PLANTED not in repr(options) + str(options) + repr(options.notes)


@pytest.mark.parametrize("name", [option.name for option in OPTIONS if option.secret])
def test_no_error_shows_the_value_of_a_secret_option(name: str) -> None:
    # Every secret option beside a mistake, so that there is an error whatever becomes of the secret.
    for base in (READ, SASL, TLS):
        error = refused({**base, name: PLANTED, "failOnDataLoss": "x"})
        text = "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))
        assert PLANTED not in text


@pytest.mark.parametrize("name", ["kafka.sasl.pasword", "kafka.ssl.key.pass", "password", "kafka.sasl.jaas.confg"])
def test_the_value_of_a_misspelt_option_is_not_shown(name: str) -> None:
    error = refused({**READ, name: PLANTED})
    assert error.condition == "OPTION_UNKNOWN"
    assert PLANTED not in repr(error) + repr(vars(error))


def test_credentials_in_a_server_entry_are_not_shown() -> None:
    error = refused({**READ, "kafka.bootstrap.servers": f"ann:{PLANTED}@b:9092"})
    assert PLANTED not in repr(error)
