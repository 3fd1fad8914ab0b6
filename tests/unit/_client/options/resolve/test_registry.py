"""Options of the schema registry: its addresses, logins and certificates."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from pyspark_kafka._client.options import BatchReadOptions, RegistryOptions, Secret, parse_batch_read_options
from pyspark_kafka.errors import OptionError

PLANTED = "Pl4ntedS3cret"
READ = {"kafka.bootstrap.servers": "b:9092", "subscribe": "t", "valueFormat": "avro"}
URL = "https://registry:8081"


def options_of(**raw: str) -> BatchReadOptions:
    named = {f"schema.registry.{name.replace('__', '.')}": value for name, value in raw.items()}
    return parse_batch_read_options({**READ, **named})


def registry(**raw: str) -> RegistryOptions:
    typed = options_of(**raw).typed
    assert typed is not None
    assert typed.registry is not None
    return typed.registry


def refused(**raw: str) -> OptionError:
    with pytest.raises(OptionError) as caught:
        options_of(**raw)
    assert PLANTED not in repr(caught.value) + str(caught.value) + repr(vars(caught.value))
    return caught.value


def revealed(secret: Secret | None) -> str:
    assert secret is not None
    return secret.reveal()


def test_addresses_are_those_of_one_registry() -> None:
    found = registry(url=" https://a:8081/ ,http://127.0.0.1:8081/apis/ccompat/v7/,https://a:8081,https://[::1]:1 ")
    assert found.urls == ("https://a:8081", "http://127.0.0.1:8081/apis/ccompat/v7", "https://[::1]:1")
    assert found == RegistryOptions(urls=found.urls)


def test_credentials_in_a_url_become_a_secret() -> None:
    found = registry(url=f"https://ann:{PLANTED}%40@a:8081,https://ann:{PLANTED}%40@b:8081")
    assert found.urls == ("https://a:8081", "https://b:8081")
    assert revealed(found.basic_auth) == f"ann:{PLANTED}@"
    assert PLANTED not in repr(found)


@pytest.mark.parametrize("source", [None, "user_info"])
def test_user_and_password_may_be_a_reference(source: str | None) -> None:
    more = {"basic__auth__credentials__source": source} if source else {}
    found = registry(url=URL, basic__auth__user__info="env:LOGIN", **more)
    assert found.basic_auth == Secret.parse("env:LOGIN")
    assert pickle.loads(pickle.dumps(found)) == found  # noqa: S301 - our own bytes


def test_user_and_password_that_stand_in_an_option_are_noted() -> None:
    options = options_of(url=URL, basic__auth__user__info=f"ann:{PLANTED}")
    (note,) = options.notes
    assert "set the option to file:PATH" in note
    assert PLANTED not in note + repr(options)


def test_a_token_and_files_of_certificates_arrive() -> None:
    found = registry(
        url=URL, bearer__auth__token=PLANTED, bearer__auth__credentials__source="STATIC_TOKEN",
        ssl__ca__location="/ca.pem", ssl__certificate__location="/c.pem", ssl__key__location="/k.pem",
        ssl__key__password=PLANTED, timeout="5s", ssl__endpoint__identification__algorithm="HTTPS",
    )  # fmt: skip
    assert (found.ca_location, found.certificate_location, found.key_location) == ("/ca.pem", "/c.pem", "/k.pem")
    assert revealed(found.bearer_token) == revealed(found.key_password) == PLANTED
    assert found.timeout_ms == 5_000
    assert PLANTED not in repr(found)


def test_javas_names_of_pem_files_are_read() -> None:
    found = registry(
        url=URL, ssl__truststore__location="/ca.pem", ssl__truststore__type="pem", ssl__keystore__location="/both.pem"
    )
    assert (found.ca_location, found.certificate_location, found.key_location) == ("/ca.pem", "/both.pem", "/both.pem")


@pytest.mark.parametrize("host", ["http://localhost:1", "http://127.0.0.1:1", "http://[::1]:1", "https://far:1"])
def test_credentials_are_sent_where_nobody_reads_them(host: str) -> None:
    assert registry(url=host, bearer__auth__token="env:TOKEN").urls == (host,)  # noqa: S106 - a reference


def test_credentials_over_http_to_another_machine_must_be_asked_for() -> None:
    for login in ({"basic__auth__user__info": f"ann:{PLANTED}"}, {"bearer__auth__token": PLANTED}):
        error = refused(url=f"{URL},http://far:8081", **login)
        assert "would cross the network unencrypted" in str(error)
        assert "schema.registry.allow.http.credentials" in error.hint
    error = refused(url=f"http://ann:{PLANTED}@far:8081")
    assert "would cross the network unencrypted" in str(error)
    options = options_of(url="http://far:8081", bearer__auth__token="env:T", allow__http__credentials="true")  # noqa: S106
    assert any("cross the network unencrypted" in note for note in options.notes)
    assert registry(url="http://far:8081").urls == ("http://far:8081",)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"timeout": "5s"}, "Option 'schema.registry.url' must be set with 'schema.registry.timeout'"),
        ({"bearer__auth__token": PLANTED}, "must be set with 'schema.registry.bearer.auth.token'"),
        ({"url": URL, "region": "eu-central-1"}, "'schema.registry.region' is for a registry of Glue"),
        ({"region": "eu-central-1", "bearer__auth__token": PLANTED}, "is for a registry with a URL"),
        ({"url": URL, "ssl__key__location": "/k.pem"}, "'schema.registry.ssl.certificate.location' must be set with"),
        ({"url": URL, "ssl__key__password": PLANTED}, "'schema.registry.ssl.key.password' is given without"),
        ({"url": URL, "ssl__truststore__type": "PEM"}, "is given without 'schema.registry.ssl.truststore.location'"),
        ({"url": "http://r:1", "ssl__ca__location": "/c"}, "is not an https URL: connections would not be encrypted"),
        ({"url": URL, "basic__auth__credentials__source": "USER_INFO"}, "must be set with"),
        ({"url": URL, "basic__auth__credentials__source": "URL"}, "has no credentials in it"),
        ({"url": URL, "bearer__auth__credentials__source": "STATIC_TOKEN"}, "must be set with"),
        ({"url": f"https://a:{PLANTED}@r:1", "basic__auth__user__info": "a:b"}, "has credentials in it as well"),
        ({"url": f"https://a:{PLANTED}@r:1", "bearer__auth__token": "t"}, "is asked with one of them"),
        ({"url": URL, "ssl__ca__location": "/a", "ssl__truststore__location": "/b"}, "only one of"),
    ],
    ids=lambda given: ",".join(given) if isinstance(given, dict) else "",
)
def test_options_that_do_not_fit_are_refused(raw: dict[str, Any], expected: str) -> None:
    error = refused(**raw)
    assert expected in str(error)
    assert error.condition in ("OPTION_MISSING", "OPTION_CONFLICT")
    assert error.hint


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"url": f"ann:{PLANTED}@registry:8081"}, "got a URL with '@' in it"),
        ({"url": f"https://{PLANTED}@registry:8081"}, "not with both a user and a password"),
        ({"url": "registry:8081"}, "must be http or https URLs with a host"),
        ({"url": "ftp://registry"}, "must be http or https URLs with a host"),
        ({"url": "https://registry:99999"}, "must be http or https URLs with a host"),
        ({"url": "https://reg istry"}, "must be http or https URLs with a host"),
        ({"url": "https://registry/?a=b"}, "without a query"),
        ({"url": f"https://a:{PLANTED}@r/?a=b"}, "without a query"),
        ({"url": " , "}, "got an empty list"),
        ({"url": ",".join(f"https://r{number}" for number in range(21))}, "at most 20 addresses"),
        ({"url": f"https://a:b@r1,https://a:{PLANTED}@r2"}, "has different credentials in its URLs"),
        ({"url": URL, "basic__auth__user__info": PLANTED}, "must be user:password"),
        ({"url": URL, "basic__auth__credentials__source": "SASL_INHERIT"}, "SASL_INHERIT is not supported"),
        ({"url": URL, "basic__auth__credentials__source": "VAULT"}, "must be USER_INFO or URL; got 'VAULT'"),
        ({"url": URL, "bearer__auth__credentials__source": "SASL_OAUTHBEARER_INHERIT"}, "must be STATIC_TOKEN"),
        ({"url": URL, "ssl__truststore__location": "/ca.jks"}, "must be a PEM file; got '/ca.jks'"),
        ({"url": URL, "ssl__truststore__location": " "}, "must not be empty"),
        ({"url": URL, "ssl__keystore__type": "JKS", "ssl__keystore__location": "/k"}, "must be PEM"),
        ({"url": URL, "ssl__endpoint__identification__algorithm": ""}, "must be https"),
        ({"url": URL, "timeout": "30"}, "must be a time span from 100ms to 10m; got '30'"),
        ({"region": "Frankfurt"}, "must be a region of AWS"),
    ],
    ids=lambda given: str(given)[:40] if isinstance(given, dict) else "",
)
def test_an_invalid_value_is_refused(raw: dict[str, Any], expected: str) -> None:
    error = refused(**raw)
    assert error.condition == "OPTION_INVALID"
    assert expected in str(error)


def test_an_unknown_option_of_the_registry_is_refused_with_the_nearest_name() -> None:
    error = refused(url=URL, basic__auth__userinfo=PLANTED)
    assert error.condition == "OPTION_UNKNOWN"
    assert error.hint == "Did you mean 'schema.registry.basic.auth.user.info'?"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("ssl__keystore__password", "`schema.registry.ssl.key.password`"),
        ("ssl__truststore__password", "PEM files, which have no store password"),
        ("bearer__auth__client__secret", "`call:package.module:function`"),
        ("bearer__auth__logical__cluster", "`call:package.module:function`"),
    ],
)
def test_option_of_javas_clients_that_cannot_be_honored_is_refused(name: str, hint: str) -> None:
    error = refused(url=URL, **{name: PLANTED})
    assert error.condition == "OPTION_REFUSED"
    assert hint in error.hint


@pytest.mark.parametrize("name", ["kafka.schema.registry.url", "confluent.schema.registry.url", "schemaRegistryUrl"])
def test_address_under_another_name_is_refused_with_the_name_here(name: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_batch_read_options({**READ, name: f"https://ann:{PLANTED}@registry"})
    assert "Did you mean 'schema.registry.url'?" in str(caught.value)
    assert PLANTED not in str(caught.value)
