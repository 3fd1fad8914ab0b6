"""Metadata as values: what brokers say of topics and brokers, and names that no cluster has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from kafka.protocol.metadata import MetadataResponse

from pyspark_kafka._client.client.cluster.metadata import ClusterMetadata, parse_metadata
from pyspark_kafka.errors import ProtocolError


def partition(number: int) -> Any:
    return MetadataResponse.MetadataResponseTopic.MetadataResponsePartition(
        error_code=0, partition_index=number, leader_id=1, leader_epoch=3, replica_nodes=[1], isr_nodes=[1]
    )


def metadata(
    *,
    topic: str = "t",
    host: str = "h",
    error_code: int = 0,
    asked: list[str] | None = None,
    partitions: Sequence[int] = (0,),
    times: int = 1,
) -> ClusterMetadata:
    response = MetadataResponse(
        brokers=[MetadataResponse.MetadataResponseBroker(node_id=1, host=host, port=9092, rack=None)],
        cluster_id="c",
        controller_id=1,
        topics=[
            MetadataResponse.MetadataResponseTopic(
                error_code=error_code,
                name=topic,
                topic_id=None,
                is_internal=False,
                partitions=[*map(partition, partitions)],
            )
        ]
        * times,
    )
    return parse_metadata(response, 12, asked=asked, address="h:9092")


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[2J", "a\u2028b", "a\u202eb", "a\x00"])
def test_name_that_would_change_a_log_is_refused(name: str) -> None:
    with pytest.raises(
        ProtocolError, match=r"\[RESPONSE_INVALID\] The metadata of the cluster name a topic "
    ) as caught:
        metadata(topic=name)
    assert str(caught.value).isprintable()
    with pytest.raises(ProtocolError, match=r"\[RESPONSE_INVALID\] The metadata of the cluster name a broker "):
        metadata(host=name)


def test_names_of_other_products_and_of_topics_that_are_not_there_are_taken() -> None:
    assert metadata(topic="persistent://public/default/é").topics.keys() == {"persistent://public/default/é"}
    # What the user has typed comes back with the code that says so.
    found = metadata(topic="a\u00a0b", error_code=17, asked=["a\u00a0b"])
    assert found.topics["a\u00a0b"].error is not None


def test_name_of_a_listed_topic_that_would_change_a_log_is_refused_whatever_its_code() -> None:
    with pytest.raises(ProtocolError, match="characters that are not printable"):
        metadata(topic="a\nb", error_code=17)


def test_topic_that_was_not_asked_for_is_left_out() -> None:
    """Even if its name would change a log."""
    assert metadata(topic="secret\n", asked=[]).topics == {}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"asked": ["t", "u"]}, "lacks u"),
        ({"topic": "T", "asked": ["t"]}, "lacks t"),
        ({"times": 2, "asked": ["t"]}, "names t twice"),
        ({"times": 2}, "names t twice"),
        ({"partitions": ()}, "lacks partitions of topic 't'"),
        ({"partitions": (0, 2)}, "lacks partitions of topic 't'"),
        ({"partitions": (1,), "asked": ["t"]}, "lacks partitions of topic 't'"),
        ({"partitions": (-1, 0)}, "lacks partitions of topic 't'"),
        ({"partitions": (0, 1, 0)}, "names a partition of topic 't' twice"),
        ({"partitions": (0, 1, 1), "asked": ["t"]}, "names a partition of topic 't' twice"),
    ],
)
def test_metadata_that_do_not_fit_the_question_are_an_error_to_be_retried(
    changes: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ProtocolError, match=r"\[RESPONSE_INCOMPLETE\] The response of h:9092 to Metadata " + problem):
        metadata(**changes)


def test_partitions_are_in_the_order_of_their_numbers() -> None:
    found = metadata(partitions=(2, 0, 1)).topics["t"].partitions
    assert [each.topic_partition.partition for each in found] == [0, 1, 2]
    assert metadata(error_code=3, partitions=()).topics["t"].partitions == ()
