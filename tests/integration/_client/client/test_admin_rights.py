"""Functions for administrators, by a user without the right: the error has the line that grants it."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from kit.administration import create_topic
from kit.reading import client_of
from kit.rights_in_use import Guarded
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.queries.log_sizes import fetch_log_sizes
from pyspark_kafka._client.client.wire.missing_rights import Right
from pyspark_kafka._client.options import parse_write_options
from pyspark_kafka.errors import AccessError


@pytest.mark.parametrize(
    ("right", "call"),
    [
        (Right("Create", "topic", "new"), lambda client, _: create_topic(client, "new")),
        (Right("Describe", "cluster"), lambda client, topic: fetch_log_sizes(client, [TopicPartition(topic, 0)])),
    ],
    ids=lambda value: f"{value.operation} {value.kind}" if isinstance(value, Right) else None,
)
def test_missing_right_of_an_administrator_is_named(
    guarded: Guarded, right: Right, call: Callable[[KafkaClient, str], object]
) -> None:
    topic = f"t-{uuid.uuid4().hex[:8]}"
    guarded.kafka.create_topic(topic)
    guarded.acls.put([Right("Describe", "topic", topic)])
    with (
        client_of(parse_write_options(guarded.user, streaming=False).connection) as client,
        pytest.raises(AccessError) as caught,
    ):
        call(client, topic)
    name = topic if right.name == "t" else right.name
    resource = f"--{right.kind} {name}".rstrip()
    assert f"--allow-principal User:alice --operation {right.operation} {resource}`" in str(caught.value)
    assert "Missing right: " in str(caught.value)
