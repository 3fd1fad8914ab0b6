"""Metadata as values: what brokers say of topics and brokers, and names that no cluster has."""

from __future__ import annotations

import pytest
from kafka.protocol.metadata import MetadataResponse

from pyspark_kafka.client.cluster.metadata import ClusterMetadata, parse_metadata
from pyspark_kafka.errors import ProtocolError


def metadata(*, topic: str = "t", host: str = "h", error_code: int = 0) -> ClusterMetadata:
    response = MetadataResponse(
        brokers=[MetadataResponse.MetadataResponseBroker(node_id=1, host=host, port=9092, rack=None)],
        cluster_id="c",
        controller_id=1,
        topics=[
            MetadataResponse.MetadataResponseTopic(
                error_code=error_code, name=topic, topic_id=None, is_internal=False, partitions=[]
            )
        ],
    )
    return parse_metadata(response, 12)


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
    assert metadata(topic="a\u00a0b", error_code=17).topics["a\u00a0b"].error is not None
