"""Delegation tokens as values: times of the wire, whatever a broker sends."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from pyspark_kafka._client.client.login.delegation_token import DelegationToken, jaas_text, time_of
from pyspark_kafka._client.options import ScramLogin, Secret, parse_write_options


@pytest.mark.parametrize(
    ("milliseconds", "time"),
    [
        (0, datetime(1970, 1, 1, tzinfo=timezone.utc)),
        (1_500, datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=timezone.utc)),
        # As a cluster with delegation.token.max.lifetime.ms of Java's Long.MAX_VALUE.
        (2**63 - 1, datetime.max.replace(tzinfo=timezone.utc)),
        (10**15, datetime.max.replace(tzinfo=timezone.utc)),
        (-(2**63), datetime(1970, 1, 1, tzinfo=timezone.utc)),
    ],
)
def test_time_of_the_wire_is_one_that_there_is(milliseconds: int, time: datetime) -> None:
    assert time_of(milliseconds) == time


def test_id_that_a_broker_made_up_is_a_name_and_no_setting() -> None:
    now = datetime(2026, 1, 1, tzinfo=timezone.utc)
    name = 'a" tokenauth="false\\'
    token = DelegationToken(name, Secret("a2V5"), "User:alice", now, now, now)
    options = {
        "kafka.bootstrap.servers": "b:9093",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-256",
        "kafka.sasl.jaas.config": jaas_text(token),
    }
    login = parse_write_options(options, streaming=False).connection.login
    assert login == ScramLogin(name, Secret("a2V5"), "SCRAM-SHA-256", delegation_token=True)
