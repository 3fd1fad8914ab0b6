"""Tokens for Amazon MSK: signed by AWS's signer with credentials of this test; no MSK is asked."""

from __future__ import annotations

import base64
import sys
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from pyspark_kafka._client.client.login.mechanisms import build_mechanism
from pyspark_kafka._client.client.login.tokens.msk_iam import region_of, sign_token
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.options import MskIamLogin
from pyspark_kafka.errors import MissingDependencyError, OptionError

BROKER = "b-1.orders.a1b2c3.c2.kafka.eu-central-1.amazonaws.com"
KEY_ID, KEY = "AKIAOFTHISTEST", "Pl4nted-key-of-this-test"


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEY)
    # Nothing of this machine, and no request to an address that only machines of AWS have.
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


def query_of(token: str) -> tuple[str, dict[str, list[str]]]:
    url = urlsplit(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode())
    return f"{url.scheme}://{url.netloc}{url.path}", parse_qs(url.query)


def test_a_token_is_a_signed_url_that_counts_for_15_minutes() -> None:
    token = sign_token(MskIamLogin(), "eu-central-1")
    address, query = query_of(token.value.reveal())
    assert address == "https://kafka.eu-central-1.amazonaws.com/"
    assert query["Action"] == ["kafka-cluster:Connect"]
    assert query["X-Amz-Algorithm"] == ["AWS4-HMAC-SHA256"]
    assert query["X-Amz-Expires"] == ["900"]
    assert query["X-Amz-Credential"][0].startswith(f"{KEY_ID}/")
    assert query["X-Amz-Credential"][0].endswith("/eu-central-1/kafka-cluster/aws4_request")
    assert len(query["X-Amz-Signature"][0]) == 64
    assert token.expires_at == pytest.approx(time.time() + 900, abs=30)
    assert KEY not in str(query)


def test_an_exchange_sends_the_token_with_oauthbearer() -> None:
    made = build_mechanism(MskIamLogin(), BROKER, Deadline(30_000))
    assert made.name == "OAUTHBEARER"
    sent = made.auth_bytes().decode()
    assert sent.startswith("n,,\x01auth=Bearer ")
    address, _ = query_of(sent.removeprefix("n,,\x01auth=Bearer ").rstrip("\x01"))
    assert address == "https://kafka.eu-central-1.amazonaws.com/"
    # Kept for the next connection, to another broker too.
    other = build_mechanism(MskIamLogin(), BROKER.replace("b-1", "b-2"), Deadline(30_000))
    assert other.auth_bytes().decode() == sent


def test_a_profile_is_used(tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text("[dev]\naws_access_key_id = AKIADEV\naws_secret_access_key = k\n")
    _, query = query_of(sign_token(MskIamLogin(profile="dev"), "eu-west-1").value.reveal())
    assert query["X-Amz-Credential"][0].startswith("AKIADEV/")


def test_a_profile_that_is_not_there_is_named() -> None:
    with pytest.raises(OptionError, match=r"\[TOKEN_UNAVAILABLE\].* for profile 'none': ProfileNotFound: .*none"):
        sign_token(MskIamLogin(profile="none"), "eu-west-1")


def test_missing_credentials_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(OptionError, match=r"no credentials were found\. No connection was made"):
        sign_token(MskIamLogin(), "eu-west-1")


def test_a_missing_signer_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
    with pytest.raises(MissingDependencyError, match=r"pyspark-kafka\[msk\]"):
        sign_token(MskIamLogin(), "eu-west-1")


@pytest.mark.parametrize(
    ("host", "region"),
    [
        (BROKER, "eu-central-1"),
        (BROKER.upper() + ".", "eu-central-1"),
        ("boot-a1b2.c1.kafka-serverless.us-east-1.amazonaws.com", "us-east-1"),
        ("b-1.orders.a1.c2.kafka.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("b-1-public.orders.a1.c2.kafka.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
    ],
)
def test_a_region_is_that_of_the_brokers_name(host: str, region: str) -> None:
    assert region_of(MskIamLogin(), host) == region


def test_a_region_of_the_option_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "ap-south-1")
    assert region_of(MskIamLogin(region="eu-west-2"), BROKER) == "eu-west-2"
    assert region_of(MskIamLogin(), "kafka.internal") == "ap-south-1"


@pytest.mark.parametrize("host", ["kafka.internal", "evil.kafka.us-east-1.amazonaws.com.evil.example"])
def test_an_unknown_region_names_the_option(host: str) -> None:
    with pytest.raises(OptionError, match=r"Hint: Set kafka\.sasl\.msk\.iam\.region"):
        region_of(MskIamLogin(), host)


def test_identity_of_the_process_is_used_only_if_the_process_allows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_KAFKA_REFERENCES", "identity:kerberos")
    with pytest.raises(OptionError, match=r"REFERENCE_NOT_ALLOWED.*the identity that the process has 'aws'"):
        sign_token(MskIamLogin(), "eu-central-1")
    monkeypatch.setenv("PYSPARK_KAFKA_REFERENCES", "identity:aws")
    assert sign_token(MskIamLogin(), "eu-central-1").value
