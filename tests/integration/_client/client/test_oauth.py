"""OAUTHBEARER on a real broker: tokens of a server, of a file and of a function, and what a refusal says."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from kit.fakes.token_endpoint import Answer, TokenEndpoint
from kit.fixtures.secured_broker import CLIENTS
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.options import parse_batch_read_options
from pyspark_kafka.errors import AccessError
from pyspark_kafka.testing import EmbeddedKafka

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


def options(kafka: EmbeddedKafka, endpoint: TokenEndpoint, **changes: str) -> dict[str, str]:
    return {
        **kafka.security.client_options("SASL_SSL", user="alice", mechanism="SCRAM-SHA-512"),
        "subscribe": "t",
        "kafka.sasl.mechanism": "OAUTHBEARER",
        "kafka.sasl.jaas.config": f"{MODULE} required clientId='alice' clientSecret='{CLIENTS['alice']}' "
        f"ssl.truststore.type='PEM' ssl.truststore.location='{endpoint.trusted}';",
        "kafka.sasl.oauthbearer.token.endpoint.url": endpoint.url,
        # Its secret has characters that the endpoint decodes.
        "kafka.sasl.oauthbearer.header.urlencode": "true",
        **changes,
    }


def brokers(raw: dict[str, str]) -> int:
    with KafkaClient(parse_batch_read_options(raw).connection) as client:
        return len(client.fetch_metadata(()).brokers)


def without_source(raw: dict[str, str], **instead: str) -> dict[str, str]:
    name = "kafka.sasl.oauthbearer.token.endpoint.url"
    return {**{key: value for key, value in raw.items() if key not in (name, "kafka.sasl.jaas.config")}, **instead}


def test_a_token_of_the_server_opens_connections_and_is_asked_for_once(
    secured_kafka: EmbeddedKafka, token_endpoint: TokenEndpoint
) -> None:
    raw = options(secured_kafka, token_endpoint)
    assert brokers(raw) == 1
    assert brokers(raw) == 1
    assert [request.client_id for request in token_endpoint.requests] == ["alice"]


def test_a_refused_token_is_replaced_by_a_new_one(secured_kafka: EmbeddedKafka, token_endpoint: TokenEndpoint) -> None:
    # The broker accepts it while it is new, and no more when it has expired by the broker's clock.
    raw = options(secured_kafka, token_endpoint, **{"kafka.sasl.login.refresh.window.factor": "1.0"})
    token_endpoint.next_answers([Answer(lifetime_s=4), Answer()])
    assert brokers(raw) == 1
    while len(token_endpoint.requests) == 1:
        assert brokers(raw) == 1
    assert len(token_endpoint.requests) == 2


def test_a_function_hands_out_tokens(
    secured_kafka: EmbeddedKafka, token_endpoint: TokenEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    module: Any = ModuleType("tokens_of_this_test")
    module.get = lambda: (secured_kafka.security.tokens.token("alice"), 60_000)
    monkeypatch.setitem(sys.modules, "tokens_of_this_test", module)
    raw = without_source(
        options(secured_kafka, token_endpoint),
        **{"kafka.sasl.oauthbearer.token.callable": "tokens_of_this_test:get"},
    )
    assert brokers(raw) == 1


@pytest.mark.parametrize(
    ("claims", "text"),
    [
        ({"aud": "another"}, "for audience 'another'"),
        ({"iss": "another"}, "of issuer 'another'"),
        ({"aud": []}, "for no audience"),
    ],
)
def test_a_refusal_says_what_the_token_says(
    secured_kafka: EmbeddedKafka, token_endpoint: TokenEndpoint, claims: dict[str, Any], text: str
) -> None:
    url = secured_kafka.security.token_file("alice", **claims).as_uri()
    raw = without_source(options(secured_kafka, token_endpoint), **{"kafka.sasl.oauthbearer.token.endpoint.url": url})
    with pytest.raises(AccessError) as caught:
        brokers(raw)
    assert caught.value.condition == "SASL_AUTHENTICATION_FAILED"
    assert text in str(caught.value)
    assert "sasl.oauthbearer.expected.issuer" in str(caught.value)
