"""One Metadata request to any broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._client.client.cluster.any_broker import HEDGE_AFTER_S
from pyspark_kafka._client.client.cluster.errors import metadata_without_brokers
from pyspark_kafka._client.client.cluster.metadata import parse_metadata
from pyspark_kafka._client.client.wire.messages import ErrorCode, MetadataRequest, broker_error
from pyspark_kafka.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark_kafka._client.client.cluster.any_broker import AnyBroker
    from pyspark_kafka._client.client.cluster.known_servers import Server
    from pyspark_kafka._client.client.cluster.metadata import ClusterMetadata
    from pyspark_kafka._client.client.waiting.deadline import Deadline

# A broker may take longer to describe more topics than that; another is not to describe them all as well.
_FEW_TOPICS = 100
_LATE_HEDGE_S = 4.0


def request_metadata(
    any_broker: AnyBroker, topics: Collection[str] | None, deadline: Deadline
) -> tuple[ClusterMetadata, Server]:
    """Request brokers and topics from one broker, once; `KafkaClient.fetch_metadata` retries after a failure.

    The request never creates a topic.

    Args:
        any_broker: of the cluster.
        topics: names; None requests all topics that this user may describe.
        deadline: for the request.

    Returns:
        The broker's response, and its address.

    Raises:
        ConnectorError: as `AnyBroker.call`; or the broker refused, returned no brokers, or left something out.
    """
    wanted = None if topics is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
    hedge_after_s = HEDGE_AFTER_S if topics is not None and len(topics) <= _FEW_TOPICS else _LATE_HEDGE_S
    response, connection = any_broker.call(request, deadline, hedge_after_s=hedge_after_s)
    # Only version 13 has a code for the whole response; the default of older ones is 0.
    if response.error_code != ErrorCode.NONE:
        raise broker_error(response.error_code, f"Asking {connection.address} for metadata failed")
    if not response.brokers:
        # The response of a broker without the cluster's state yet; the next broker may have it.
        connection.close()
        raise metadata_without_brokers(connection.address)
    version = connection.api_version(MetadataRequest)
    try:
        found = parse_metadata(response, version, asked=topics, address=connection.address)
    except ProtocolError:
        # The next broker may return more.
        connection.close()
        raise
    return found, (connection.host, connection.port)
