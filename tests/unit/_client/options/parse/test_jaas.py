"""JAAS configurations are read, and never repeated in errors."""

from __future__ import annotations

import traceback

import pytest

from kit.raw_options import KRB5, PLAIN, PLANTED, SASL, SCRAM, refused_read
from pyspark_kafka._client.options.parse.jaas import parse_jaas_config


@pytest.mark.parametrize(
    ("text", "username", "password"),
    [
        (f'{PLAIN} required username="u" password="p";', "u", "p"),
        (f"  {PLAIN}\n required\n username='u'\n password='p' ;  ", "u", "p"),
        (f"{PLAIN} REQUIRED password=p username=u serviceName=x;", "u", "p"),
        (f'{PLAIN} required username="a b;=" password="q\\"u\\\\o";', "a b;=", 'q"u\\o'),
        (f'kafkashaded.{PLAIN} required username="u" password="";', "u", ""),
    ],
)
def test_jaas_configurations(text: str, username: str, password: str) -> None:
    config = parse_jaas_config(text)
    assert (config.texts["username"], config.secrets["password"].reveal()) == (username, password)
    assert config.mechanisms == ("PLAIN",)


def test_escapes_and_comments_are_those_of_java() -> None:
    text = f"""{SCRAM} required // the cluster's
        username="a\\tb" /* a "comment" */ password='\\101\\"//' tokenauth=true;"""
    config = parse_jaas_config(text)
    assert config.texts["username"] == "a\tb"
    assert config.secrets["password"].reveal() == 'A"//'
    assert config.flag("tokenauth")


def test_a_configuration_shows_no_secret() -> None:
    config = parse_jaas_config(f'{SCRAM} required username="u" password="{PLANTED}";')
    assert PLANTED not in f"{config} {config!r}"


def test_settings_without_effect_are_noted_by_name() -> None:
    config = parse_jaas_config(f"{KRB5} required useTicketCache=true refreshKrb5Config=true debug=true;")
    assert config.mechanisms == ("GSSAPI",)
    assert config.notes == (
        "Setting 'refreshKrb5Config' of Krb5LoginModule in kafka.sasl.jaas.config has no effect here.",
        "Setting 'debug' of Krb5LoginModule in kafka.sasl.jaas.config has no effect here.",
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "must have the form"),
        (f'{PLAIN} required username="u" password="{PLANTED}"', "with the semicolon"),
        (f'{PLAIN} username="u" password="{PLANTED}";', "must say 'required'"),
        (f'com.sun.Krb5LoginModule required username="u" password="{PLANTED}";', "must use one of the login modules"),
        (f'{PLAIN} required user_bob="{PLANTED}";', "those are for brokers"),
        (f"{PLAIN} required username=u password=a {PLANTED}=b;", "a setting that PlainLoginModule does not have"),
        (f'{PLAIN} required username="u" password="{PLANTED}\n";', "quotation mark without a closing one"),
        (f'{PLAIN} required username="u" password="{PLANTED}\\0";', "must not have a zero character"),
        (f'{PLAIN} required username="u" /* password="{PLANTED}";', "or an open comment"),
        (PLANTED * 20_000, "has 280000 characters, more than 131072"),
        (f"{PLAIN} required username=u;", "must set username and password"),
        (f'{PLAIN} required username="" password="{PLANTED}";', "must set username and password"),
        (f'{PLAIN} required username "u" password="{PLANTED}";', "must have settings of the form"),
        (f'{PLAIN} required username="u" password={PLANTED}" x;', "quotation mark without a closing one"),
        (f'{PLAIN} required username="u" username="v" password="{PLANTED}";', "sets the same name twice"),
        (f'{PLAIN} required username="u" password="{PLANTED}"; {PLAIN} required a=b;', "one login module only"),
    ],
)
def test_jaas_configurations_that_cannot_be_read_are_refused_without_repeating_them(text: str, reason: str) -> None:
    error = refused_read({**SASL, "kafka.sasl.jaas.config": text})
    assert reason in str(error)
    assert PLANTED not in "".join(traceback.format_exception(error))
