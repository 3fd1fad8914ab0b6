"""A JAAS configuration that is elsewhere is read for each connection, and no error shows any of it."""

from __future__ import annotations

import pickle
import traceback
from pathlib import Path

import pytest

from pyspark_kafka._client.client.login.credential_ref import resolve_login
from pyspark_kafka._client.options import Login, PlainLogin, ReferredLogin, ScramLogin, Secret, parse_batch_read_options
from pyspark_kafka.errors import OptionError

PLANTED = "Pl4nted-S3cret"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def login_of(config: str, mechanism: str = "SCRAM-SHA-512") -> Login:
    raw = {
        "kafka.bootstrap.servers": "b:9093",
        "subscribe": "t",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": mechanism,
        "kafka.sasl.jaas.config": config,
    }
    login = parse_batch_read_options(raw).connection.login
    assert login is not None
    return login


def test_configuration_in_a_file_is_read_for_each_connection(tmp_path: Path) -> None:
    file = tmp_path / "sasl.jaas.config"
    login = login_of(f"file:{file}")
    assert isinstance(login, ReferredLogin)
    # Nothing of it travels, and nothing is read before a connection is made.
    for password in (PLANTED, "later"):
        file.write_text(f'{SCRAM} required username="ann" password="{password}";\n')
        assert PLANTED not in repr(login)
        assert PLANTED.encode() not in pickle.dumps(login)
        assert resolve_login(login) == ScramLogin("ann", Secret(password), "SCRAM-SHA-512")


def test_password_in_a_configuration_may_be_a_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    login = login_of(f'{SCRAM} required username="ann" password="env:PLANTED_PASSWORD";')
    assert isinstance(login, ScramLogin)
    assert login.password == Secret.parse("env:PLANTED_PASSWORD")
    assert resolve_login(login) is login
    monkeypatch.delenv("PLANTED_PASSWORD", raising=False)
    with pytest.raises(OptionError, match=r"'env:PLANTED_PASSWORD' of option 'kafka\.sasl\.jaas\.config'"):
        login.password.reveal()
    monkeypatch.setenv("PLANTED_PASSWORD", PLANTED)
    assert login.password.reveal() == PLANTED


def test_configuration_may_be_written_as_a_literal() -> None:
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule"
    login = login_of(f'literal:{plain} required username="ann" password="literal:env:x";', "PLAIN")
    assert isinstance(login, PlainLogin)
    assert login.password.reveal() == "env:x"


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (PLANTED, "must have the form"),
        (f'{SCRAM} required username="ann" password="{PLANTED}', "has an opening quotation mark without a closing one"),
        (f'{SCRAM} required username="ann" password="env:{PLANTED} !";', "begins with 'env:' but no name"),
        (
            f'{SCRAM} required username="ann" password="{PLANTED}";',
            "uses the login module of SCRAM-SHA-256 and",
        ),
    ],
)
def test_configuration_that_does_not_fit_is_an_error(tmp_path: Path, config: str, problem: str) -> None:
    file = tmp_path / "jaas"
    file.write_text(config)
    with pytest.raises(OptionError) as caught:
        resolve_login(login_of(f"file:{file}", "PLAIN"))
    error = caught.value
    assert error.condition == "OPTION_INVALID"
    assert f"refers to 'file:{file}', and what is there {problem}" in str(error)
    assert error.__context__ is None
    locals_shown = [repr(frame.f_locals) for frame, _ in traceback.walk_tb(error.__traceback__)][1:]
    assert PLANTED not in "".join([*traceback.format_exception(error), *locals_shown])


def test_configuration_that_is_not_there_is_an_error_about_the_reference(tmp_path: Path) -> None:
    with pytest.raises(OptionError) as caught:
        resolve_login(login_of(f"file:{tmp_path}/absent"))
    assert caught.value.condition == "SECRET_UNAVAILABLE"


def test_unsigned_tokens_of_a_configuration_elsewhere_are_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "jaas"
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    file.write_text(f'{module} required unsecuredLoginStringClaim_sub="{PLANTED}";')
    login = login_of(f"file:{file}", "OAUTHBEARER")
    for _ in range(2):
        resolve_login(login)
    (record,) = caplog.records
    assert "are not signed: a broker that accepts them accepts anyone." in record.getMessage()
    assert PLANTED not in record.getMessage()
