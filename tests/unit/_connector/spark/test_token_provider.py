from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from pyspark_kafka._client.options import ScramLogin, Secret, parse_login
from pyspark_kafka._connector.spark.token_provider import from_spark
from pyspark_kafka.errors import ConnectorError


def token(service: str, kind: str = "KAFKA_DELEGATION_TOKEN", name: str = "") -> Any:
    return SimpleNamespace(
        getKind=lambda: SimpleNamespace(toString=lambda: kind),
        getService=lambda: SimpleNamespace(toString=lambda: service),
        getIdentifier=lambda: bytearray(name or f"id-of-{service[-1]}", "ascii"),
        getPassword=lambda: bytearray(b"a2V5"),
    )


def session(*tokens: Any, **settings: str) -> SparkSession:
    held = SimpleNamespace(toArray=lambda: list(tokens))
    user = SimpleNamespace(getCredentials=lambda: SimpleNamespace(getAllTokens=lambda: held))
    security = SimpleNamespace(UserGroupInformation=SimpleNamespace(getCurrentUser=lambda: user))
    jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(hadoop=SimpleNamespace(security=security))))
    named = [(f"spark.kafka.clusters.{name.replace('__', '.')}", value) for name, value in settings.items()]
    conf = SimpleNamespace(getAll=lambda: named)
    return cast("SparkSession", SimpleNamespace(_jvm=jvm, sparkContext=SimpleNamespace(getConf=lambda: conf)))


A, B = token("kafka.server.delegation.token.a"), token("kafka.server.delegation.token.b")


def refusal(spark: SparkSession, servers: str = "one:9092,two:9092") -> str:
    with pytest.raises(ConnectorError) as caught:
        from_spark(spark, servers)
    assert "a2V5" not in str(caught.value)
    return str(caught.value)


def test_token_of_the_cluster_whose_pattern_matches_any_server_becomes_options() -> None:
    spark = session(
        A,
        B,
        token("hdfs", "HDFS_DELEGATION_TOKEN"),
        a__target__bootstrap__servers__regex="two:.*",
        b__target__bootstrap__servers__regex="thre+:.*",
        a__security__protocol="SASL_PLAINTEXT",
        a__sasl__token__mechanism="SCRAM-SHA-256",  # noqa: S106 - no password
    )
    assert from_spark(spark, "one:9092, two:9092") == {
        "kafka.bootstrap.servers": "one:9092, two:9092",
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "SCRAM-SHA-256",
        "kafka.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="id-of-a" password="a2V5" tokenauth="true";',
    }


def test_defaults_are_those_of_spark() -> None:
    found = from_spark(session(A), "one:9092")
    assert found["kafka.security.protocol"] == "SASL_SSL"
    assert found["kafka.sasl.mechanism"] == "SCRAM-SHA-512"


def test_quotation_mark_in_the_id_of_a_token_begins_no_setting() -> None:
    found = from_spark(session(token("kafka.server.delegation.token.a", name='x" tokenauth="false')), "one:9092")
    login = parse_login(found["kafka.sasl.jaas.config"], "SCRAM-SHA-512")
    assert login == ScramLogin('x" tokenauth="false', Secret("a2V5"), "SCRAM-SHA-512", delegation_token=True)


def test_more_than_one_token_that_matches_is_refused() -> None:
    assert refusal(session(A, B)).startswith(
        "[OPTION_CONFLICT] More than one delegation token matches the following bootstrap servers: one:9092,two:9092. "
        "They are of the clusters a, b."
    )


def test_pattern_has_to_match_the_whole_server() -> None:
    text = refusal(session(A, a__target__bootstrap__servers__regex="two"))
    assert text.startswith("[DELEGATION_TOKEN_MISSING] Spark has no delegation token for one:9092,two:9092. Hint: Set")


def test_mechanism_other_than_scram_is_refused_as_spark_does() -> None:
    text = refusal(session(A, a__sasl__token__mechanism="PLAIN"))  # noqa: S106 - no password
    assert text.startswith("[OPTION_INVALID] Delegation token works only with SCRAM mechanism, not with 'PLAIN'")


def test_pattern_that_is_none_is_refused() -> None:
    assert "is not a regular expression" in refusal(session(A, a__target__bootstrap__servers__regex="("))


def test_program_on_spark_connect_is_told_where_the_tokens_are() -> None:
    assert "a program on Spark Connect does not reach" in refusal(cast("SparkSession", SimpleNamespace()))
