"""The token endpoint of the kit: its tokens open a real broker, and it misbehaves as a test says."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import urllib.parse
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.net.sasl.oauth import AbstractTokenProvider

from kit.fakes.token_endpoint import KEYS_PATH, TOKEN_PATH, Answer, TokenEndpoint
from kit.fixtures.secured_broker import CLIENTS
from pyspark_kafka.testing import EmbeddedKafka

GRANT = {"grant_type": "client_credentials"}


def ask(endpoint: TokenEndpoint, path: str = TOKEN_PATH, **form: str) -> tuple[int, bytes]:
    context = ssl.create_default_context(cafile=str(endpoint.trusted))
    connection = http.client.HTTPSConnection("127.0.0.1", endpoint.port, context=context, timeout=120)
    try:
        connection.request(
            "POST" if form else "GET",
            path,
            urllib.parse.urlencode(form) if form else None,
            {"Content-Type": "application/x-www-form-urlencoded"},
        )
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def ask_as_alice(endpoint: TokenEndpoint) -> tuple[int, bytes]:
    return ask(endpoint, client_id="alice", client_secret=CLIENTS["alice"], **GRANT)


def test_token_of_the_endpoint_opens_the_broker(secured_kafka: EmbeddedKafka, token_endpoint: TokenEndpoint) -> None:
    status, body = ask_as_alice(token_endpoint)
    answer = json.loads(body)
    assert (status, answer["token_type"], answer["expires_in"]) == (200, "Bearer", 3600)

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        def token(self) -> str:
            return str(answer["access_token"])

    admin: Any = KafkaAdminClient(
        bootstrap_servers=secured_kafka.address("SASL_SSL"),
        security_protocol="SASL_SSL",
        ssl_cafile=str(token_endpoint.trusted),
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=Provider(),
    )
    assert isinstance(admin.list_topics(), list)
    admin.close()


def test_endpoint_refuses_wrong_secrets_and_other_grants(token_endpoint: TokenEndpoint) -> None:
    status, body = ask(token_endpoint, client_id="alice", client_secret="wrong", **GRANT)  # noqa: S106 - wrong on purpose
    assert (status, json.loads(body)["error"]) == (401, "invalid_client")
    status, body = ask(token_endpoint, client_id="bob", client_secret=CLIENTS["bob"], grant_type="password")
    assert (status, json.loads(body)["error"]) == (400, "unsupported_grant_type")
    assert [request.client_id for request in token_endpoint.requests] == ["alice", "bob"]
    assert json.loads(ask(token_endpoint, KEYS_PATH)[1])["keys"][0]["kty"] == "RSA"
    assert ask(token_endpoint, "/other")[0] == 404


def test_endpoint_answers_as_it_is_told(token_endpoint: TokenEndpoint) -> None:
    token_endpoint.next_answers(
        [
            Answer(503, b"<html>busy</html>"),
            Answer(302, b"", {"Location": "https://127.0.0.1:1/"}),
            Answer(lifetime_s=2),
            Answer(cut=10),
        ]
    )
    assert ask_as_alice(token_endpoint) == (503, b"<html>busy</html>")
    assert ask_as_alice(token_endpoint)[0] == 302
    assert json.loads(ask_as_alice(token_endpoint)[1])["expires_in"] == 2
    with pytest.raises(http.client.IncompleteRead):
        ask_as_alice(token_endpoint)
    assert json.loads(ask_as_alice(token_endpoint)[1])["expires_in"] == 3600


def test_endpoint_holds_an_answer_until_it_is_released(token_endpoint: TokenEndpoint) -> None:
    token_endpoint.next_answers([Answer(held=True)])
    answers: list[tuple[int, bytes]] = []
    asking = threading.Thread(target=lambda: answers.append(ask_as_alice(token_endpoint)))
    asking.start()
    asking.join(0.2)
    assert asking.is_alive()
    token_endpoint.release()
    asking.join()
    assert answers[0][0] == 200
