"""Missing rights in words, and the lines that grant them."""

from __future__ import annotations

import pickle
import shlex
from dataclasses import replace
from typing import Any

import pytest

from kit.texts import said
from pyspark_kafka._client.client.wire.error_codes import broker_error
from pyspark_kafka._client.client.wire.missing_rights import (
    Right,
    acls_command,
    ask_for,
    missing_sentence,
    name_user,
    principal_of,
    widen,
)
from pyspark_kafka._client.options import (
    CertificateStore,
    ConnectionOptions,
    KerberosLogin,
    MskIamLogin,
    PlainLogin,
    ScramLogin,
    Secret,
    TlsOptions,
)
from pyspark_kafka.errors import AccessError

READ = Right("Read", "topic", "orders")
ANONYMOUS = ConnectionOptions((("kafka-1", 9092), ("kafka-2", 9092)))


def refusal(code: int = 29, *rights: Right) -> AccessError:
    error = broker_error(code, "Fetching failed", rights=rights or (READ,))
    assert isinstance(error, AccessError)
    return error


@pytest.mark.parametrize(
    ("changes", "principal"),
    [
        ({}, "User:ANONYMOUS"),
        ({"security_protocol": "SSL"}, "User:ANONYMOUS"),
        ({"security_protocol": "SSL", "tls": TlsOptions(keystore=CertificateStore("k.pem"))}, "User:<you>"),
        ({"security_protocol": "SASL_SSL", "login": PlainLogin("alice", Secret("s"))}, "User:alice"),
        ({"security_protocol": "SASL_SSL", "login": ScramLogin("bob", Secret("s"), "SCRAM-SHA-256")}, "User:bob"),
        (
            # The name of a token is not that of its owner.
            {"security_protocol": "SASL_SSL", "login": ScramLogin("id", Secret("s"), "SCRAM-SHA-256", True)},
            "User:<you>",
        ),
        ({"security_protocol": "SASL_SSL", "login": KerberosLogin()}, "User:<you>"),
    ],
)
def test_principal_is_named_as_far_as_it_is_known(changes: Any, principal: str) -> None:
    assert principal_of(replace(ANONYMOUS, **changes)) == principal


@pytest.mark.parametrize(
    ("right", "text"),
    [
        (READ, "READ on topic 'orders'"),
        (Right("Describe", "topic", "orders", granted_by="Read"), "DESCRIBE on topic 'orders' (READ includes it)"),
        (Right("DescribeConfigs", "topic", "orders"), "DESCRIBE_CONFIGS on topic 'orders'"),
        (Right("Describe", "cluster"), "DESCRIBE on the cluster"),
        (Right("IdempotentWrite", "cluster"), "IDEMPOTENT_WRITE on the cluster"),
        (Right("Read", "group", "g 1"), "READ on consumer group 'g 1'"),
        (Right("Write", "transactional-id", "sink"), "WRITE on transactional id 'sink'"),
    ],
)
def test_right_has_the_words_of_kafka(right: Right, text: str) -> None:
    assert str(right) == text


@pytest.mark.parametrize(
    ("rights", "line"),
    [
        ([READ], "--operation Read --topic orders"),
        ([READ, Right("Write", "topic", "orders")], "--operation Read --operation Write --topic orders"),
        ([Right("Describe", "topic", "orders", granted_by="Write")], "--operation Write --topic orders"),
        ([Right("Describe", "cluster")], "--operation Describe --cluster"),
        ([Right("Read", "group", "it's $me")], """--operation Read --group 'it'"'"'s $me'"""),
        (
            [Right("Write", "transactional-id", "sink-3", family="sink-")],
            "--operation Write --transactional-id sink- --resource-pattern-type prefixed",
        ),
    ],
)
def test_line_grants_the_operations_on_the_resource(rights: list[Right], line: str) -> None:
    start = "kafka-acls --bootstrap-server kafka-1:9092 --add --allow-principal 'User:CN=a b,O=c' "
    assert acls_command(rights, principal="User:CN=a b,O=c", servers="kafka-1:9092") == start + line


def test_line_is_one_command_whatever_the_names_are() -> None:
    name = "a;rm -rf ~`id`$(id)\"'\n"
    words = shlex.split(acls_command([Right("Read", "group", name)], principal=f"User:{name}", servers="h:1"))
    assert words[words.index("--group") + 1] == name
    assert words[words.index("--allow-principal") + 1] == f"User:{name}"


def test_topic_that_may_be_hidden_is_said_to_be_perhaps_missing() -> None:
    text = missing_sentence([Right("Describe", "topic", "orders", granted_by="Read")])
    assert text == (
        "Missing right: DESCRIBE on topic 'orders' (READ includes it), unless there is no such topic: brokers do not "
        "tell who may not see it."
    )
    assert missing_sentence([READ]) == "Missing right: READ on topic 'orders'."


def test_hint_names_user_and_servers_once_a_client_has_seen_the_error() -> None:
    error = refusal()
    name_user(error, ANONYMOUS)
    name_user(error, ANONYMOUS)
    assert said(error).endswith(
        "Hint: Have an administrator run `kafka-acls --bootstrap-server kafka-1:9092,kafka-2:9092 --add "
        "--allow-principal User:ANONYMOUS --operation Read --topic orders`."
    )
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301 - our own bytes
    assert said(error.located("Reading")).endswith(error.hint)


def test_user_is_filled_in_when_names_have_control_characters() -> None:
    error = refusal(30, Right("Read", "group", "g\x1b[31m\n"))
    name_user(error, ANONYMOUS)
    assert "--allow-principal User:ANONYMOUS --operation Read --group 'g\\x1b[31m\\n'`." in str(error)


@pytest.mark.parametrize(
    ("right", "text"),
    [
        (READ, "kafka-cluster:DescribeTopic, kafka-cluster:ReadData on topic 'orders'"),
        (
            Right("Describe", "topic", "orders", granted_by="Write"),
            "kafka-cluster:DescribeTopic, kafka-cluster:WriteData on topic 'orders'",
        ),
        (
            Right("Write", "transactional-id", "sink-3", family="sink-"),
            "kafka-cluster:DescribeTransactionalId, kafka-cluster:AlterTransactionalId on transactional id 'sink-*'",
        ),
        (Right("Describe", "cluster"), "kafka-cluster:DescribeCluster on the cluster"),
    ],
)
def test_hint_names_actions_of_a_policy_when_the_brokers_are_those_of_msk(right: Right, text: str) -> None:
    error = refusal({"topic": 29, "transactional-id": 53, "cluster": 31}[right.kind], right)
    name_user(error, replace(ANONYMOUS, security_protocol="SASL_SSL", login=MskIamLogin()))
    assert said(error).endswith(f"Hint: Have an administrator allow {text} in the IAM policy.")
    assert "kafka-acls" not in str(error)


def test_error_without_a_right_is_left_as_it_is() -> None:
    error = AccessError("no", code=58, condition="SASL_AUTHENTICATION_FAILED", hint="Check it.")
    name_user(error, ANONYMOUS)
    widen(error, "x")
    assert said(error) == "[SASL_AUTHENTICATION_FAILED] no Hint: Check it."


def test_grant_is_for_all_names_of_a_family_after_it_was_widened() -> None:
    error = refusal(53, Right("Write", "transactional-id", "sink-3"))
    name_user(error, ANONYMOUS)
    widen(error, "other-")
    assert "prefixed" not in error.hint
    widen(error, "sink-")
    assert error.hint.endswith(
        "User:ANONYMOUS --operation Write --transactional-id sink- --resource-pattern-type prefixed`."
    )


def test_error_asks_for_all_that_its_caller_needs() -> None:
    error = refusal()
    ask_for(error, [READ, Right("Write", "topic", "orders")], "Or use another topic.")
    name_user(error, ANONYMOUS)
    assert error.parameters["missing"] == "READ on topic 'orders'; WRITE on topic 'orders'"
    assert error.hint.endswith("--operation Read --operation Write --topic orders`. Or use another topic.")
