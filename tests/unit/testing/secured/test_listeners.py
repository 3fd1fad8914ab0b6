"""Broker properties of secured listeners: text in, text out."""

from __future__ import annotations

import pytest

from pyspark_kafka.errors import SetupError
from pyspark_kafka.testing import Listener
from pyspark_kafka.testing.secured.listeners import ServerFiles, build_listener_properties, check_listeners

FILES = ServerFiles("/k.pem", "/t.pem", "file:///keys.json", "kafka", "issuer")


def build(*listeners: Listener, authorizer: bool = False) -> dict[str, str]:
    ports = {"PLAINTEXT": 1000, **{each.listener_name: 1001 + at for at, each in enumerate(listeners)}}
    return build_listener_properties(
        listeners, ports, controller_port=999, users={"al": 'p"w'}, files=FILES, authorizer=authorizer
    )


def test_broker_without_secured_listeners_keeps_its_properties() -> None:
    assert build() == {}


def test_listeners_get_addresses_names_and_protocols() -> None:
    properties = build(Listener("SSL"), Listener("SSL", "mutual", client_auth="required"))
    clients = "PLAINTEXT://127.0.0.1:1000,SSL://127.0.0.1:1001,MUTUAL://127.0.0.1:1002"
    assert properties["listeners"] == f"{clients},CONTROLLER://127.0.0.1:999"
    assert properties["advertised.listeners"] == clients
    assert properties["listener.security.protocol.map"] == "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,MUTUAL:SSL"
    assert properties["listener.name.mutual.ssl.client.auth"] == "required"
    assert properties["listener.name.ssl.ssl.client.auth"] == "none"
    assert properties["listener.name.ssl.ssl.keystore.location"] == "/k.pem"


def test_mechanisms_get_login_modules_with_escaped_passwords() -> None:
    properties = build(Listener("SASL_PLAINTEXT", mechanisms=("PLAIN", "SCRAM-SHA-256"), max_reauth_ms=5))
    prefix = "listener.name.sasl_plaintext."
    assert properties[f"{prefix}sasl.enabled.mechanisms"] == "PLAIN,SCRAM-SHA-256"
    assert properties[f"{prefix}plain.sasl.jaas.config"].endswith('PlainLoginModule required user_al="p\\"w";')
    assert properties[f"{prefix}scram-sha-256.sasl.jaas.config"].endswith("ScramLoginModule required;")
    assert properties[f"{prefix}scram-sha-256.connections.max.reauth.ms"] == "5"


def test_tokens_are_checked_with_the_keys_that_the_listener_names() -> None:
    own = build(Listener("SASL_SSL", mechanisms=("OAUTHBEARER",)))
    assert own["listener.name.sasl_ssl.sasl.oauthbearer.jwks.endpoint.url"] == "file:///keys.json"
    assert own["listener.name.sasl_ssl.sasl.oauthbearer.expected.issuer"] == "issuer"
    other = build(Listener("SASL_SSL", mechanisms=("OAUTHBEARER",), jwks_url="https://127.0.0.1:1/keys"))
    assert other["listener.name.sasl_ssl.sasl.oauthbearer.jwks.endpoint.url"] == "https://127.0.0.1:1/keys"
    assert "listener.name.sasl_ssl.sasl.oauthbearer.expected.issuer" not in other
    nobody = build(Listener("SASL_SSL", mechanisms=("OAUTHBEARER",), jwks_url="unsecured"))
    assert not [name for name in nobody if "callback" in name or "jwks" in name]


def test_authorizer_lets_nameless_clients_do_all() -> None:
    assert build(authorizer=True) == {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"protocol": "TLS"}, "protocol 'TLS'"),
        ({"protocol": "SASL_SSL"}, "needs mechanisms"),
        ({"protocol": "SSL", "mechanisms": ("PLAIN",)}, "has no mechanisms"),
        ({"protocol": "SASL_SSL", "mechanisms": ("MAGIC",)}, "mechanism 'MAGIC'"),
        ({"protocol": "SSL", "client_auth": "maybe"}, "client_auth 'maybe'"),
    ],
)
def test_listener_that_no_broker_could_run_is_refused(arguments: dict[str, str], text: str) -> None:
    with pytest.raises(SetupError, match=rf"LISTENER_INVALID\].*{text}"):
        Listener(**arguments)  # type: ignore[arg-type]


def test_two_listeners_of_one_name_are_refused() -> None:
    with pytest.raises(SetupError, match="the name SSL, which another one has"):
        check_listeners([Listener("SSL"), Listener("SSL")])
