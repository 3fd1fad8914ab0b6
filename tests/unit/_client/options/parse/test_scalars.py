from __future__ import annotations

import base64
from collections.abc import Callable

import pytest

from pyspark_kafka._client.options import parse_read_options
from pyspark_kafka._client.options.parse.scalars import location, shown_address, shown_number, shown_word
from pyspark_kafka.errors import OptionError

KEY = "-----BEGIN PRIVATE KEY-----\n" + base64.b64encode(b"hunter" * 40).decode() + "\n-----END PRIVATE KEY-----\n"
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.SignatureOfAToken0123456789"
JAAS = 'PlainLoginModule required username="ann" password="hunter2";'
SECRETS = (
    KEY,
    KEY.replace("\n", "\\n"),
    JWT,
    JAAS,
    "Summer-2026",
    "k3y0fS0m30n3",
    "Endpoint=sb://x;SharedAccessKey=aGk=",
)
READ = {"kafka.bootstrap.servers": "kafka:9092", "subscribe": "orders"}
TLS = {**READ, "kafka.security.protocol": "SSL"}
TOKENS = {**READ, "kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "OAUTHBEARER"}
TYPED = {**READ, "valueFormat": "avro", "schema.registry.url": "https://registry"}


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("show", [shown_word, shown_number, shown_address])
def test_text_that_may_be_a_secret_is_shown_by_its_length_alone(show: Callable[[str], str], secret: str) -> None:
    assert show(secret) == f"a text of {len(secret)} characters, which is not repeated, as it may be a secret"


@pytest.mark.parametrize("word", ["SASL-SSL", "sasl_plain text", "TLS", "SSLv3", " PLAIN TEXT"])
def test_misspelled_word_is_shown(word: str) -> None:
    assert shown_word(word, "SSL", "SASL_SSL", "PLAINTEXT", "SASL_PLAINTEXT") == f"'{word}'"


@pytest.mark.parametrize("number", ["0", "-1", "1_000", "10 MB", "9223372036854775808", "30 seconds", "1,5"])
def test_wrong_number_is_shown(number: str) -> None:
    assert shown_number(number) == f"'{number}'"


@pytest.mark.parametrize("address", ["kafka-1", "kafka-1:99999", "[2001:db8::1]", "kafka.example.org", "ftp://host/a"])
def test_wrong_address_is_shown(address: str) -> None:
    assert shown_address(address) == f"'{address}'"


@pytest.mark.parametrize("raw", [KEY, KEY.replace("\n", "\\n"), "/a\nb", "/a\0b", "/" + "a" * 1024])
def test_text_that_is_no_path_is_refused_and_not_repeated(raw: str) -> None:
    with pytest.raises(ValueError, match="must be the path of a file; got a text of") as caught:
        location("the.option")(raw)
    assert str(caught.value).endswith("the text of a file belongs into 'the.option'")
    assert raw not in str(caught.value)


def test_path_is_returned_without_blanks_at_its_ends() -> None:
    assert location()(" /run/secrets/my key.pem\n") == "/run/secrets/my key.pem"


@pytest.mark.parametrize(
    ("options", "name", "secret"),
    [
        *((TLS, f"kafka.ssl.{store}.location", KEY) for store in ("keystore", "truststore")),
        *((TLS, f"kafka.ssl.{name}", "Summer-2026") for name in ("keystore.type", "truststore.type", "protocol")),
        *((TLS, f"kafka.ssl.{name}", "Summer-2026") for name in ("enabled.protocols", "cipher.suites")),
        (TLS, "kafka.ssl.endpoint.identification.algorithm", "Summer-2026"),
        (READ, "kafka.security.protocol", "Summer-2026"),
        (READ, "kafka.bootstrap.servers", "Endpoint=sb://x/;SharedAccessKey=Summer-2026"),
        (READ, "kafka.fetch.max.bytes", "Summer-2026"),
        (READ, "failOnDataLoss", "Summer-2026"),
        (TOKENS, "kafka.sasl.mechanism", JAAS),
        (TOKENS, "kafka.sasl.oauthbearer.token.callable", JWT),
        (TOKENS, "kafka.sasl.oauthbearer.token.endpoint.url", JWT),
        (TYPED, "schema.registry.url", "https://registry/?key=Summer-2026"),
        (TYPED, "schema.registry.url", JWT),
        (TYPED, "schema.registry.region", "Summer-2026"),
        *((TYPED, f"schema.registry.ssl.{name}.location", KEY) for name in ("ca", "certificate", "key", "keystore")),
        *((TYPED, f"schema.registry.{name}", "Summer-2026") for name in ("ssl.keystore.type", "timeout")),
        (TYPED, "schema.registry.basic.auth.credentials.source", "Summer-2026"),
        (TYPED, "schema.registry.bearer.auth.credentials.source", "Summer-2026"),
        (TYPED, "schema.registry.ssl.endpoint.identification.algorithm", "Summer-2026"),
        (
            TOKENS,
            "kafka.sasl.jaas.config",
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
            'clientId="a" clientSecret="b" oauth.token.endpoint.uri="https://a/" '
            'ssl.truststore.location="' + KEY.replace("\n", "\\n") + '";',
        ),
    ],
)
def test_secret_in_a_neighbouring_option_is_not_repeated(options: dict[str, str], name: str, secret: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_read_options({**options, name: secret})
    text = str(caught.value) + repr(caught.value.parameters)
    assert name in text
    for part in (secret, secret[-20:], "Summer-2026", KEY[30:60]):
        assert part not in text
