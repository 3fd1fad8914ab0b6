"""Configuration values of many topics, as far as brokers return them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.wire.completeness import match_entries
from pyspark_kafka._client.client.wire.messages import DescribeConfigsRequest, ErrorCode, broker_error
from pyspark_kafka._client.client.wire.missing_rights import Right, name_user
from pyspark_kafka.errors import AccessError, ConnectorError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.waiting.deadline import Deadline

# Any broker has them all; a response should stay small.
_TOPICS_IN_REQUEST = 1_000
# Kafka `ConfigResource.Type.TOPIC`.
_TOPIC_RESOURCE = 2


def fetch_topic_configs(
    client: KafkaClient, topics: Iterable[str], names: Sequence[str], deadline: Deadline
) -> dict[str, dict[str, str | None] | ConnectorError]:
    """Return configuration values of topics, defaults included.

    Runs on: driver and executor; blocks.

    Args:
        client: the cluster.
        topics: their names.
        names: the requested values, by Kafka's names.
        deadline: for everything.

    Returns:
        By topic its values, or why they are not known, such as the missing right DESCRIBE_CONFIGS.
    """
    wanted = sorted(set(topics))
    found: dict[str, dict[str, str | None] | ConnectorError] = {}
    for start in range(0, len(wanted), _TOPICS_IN_REQUEST):
        asked = wanted[start : start + _TOPICS_IN_REQUEST]
        try:
            found |= client.retrying(
                "Looking up the configuration of topics", deadline, partial(_ask, client, asked, names)
            )
        except ConnectorError as error:
            found |= dict.fromkeys(asked, error)
    return found


def _ask(
    client: KafkaClient, topics: list[str], names: Sequence[str], deadline: Deadline
) -> dict[str, dict[str, str | None] | ConnectorError]:
    resource_class = DescribeConfigsRequest.DescribeConfigsResource
    request = DescribeConfigsRequest(
        resources=[
            resource_class(resource_type=_TOPIC_RESOURCE, resource_name=topic, configuration_keys=list(names))
            for topic in topics
        ]
    )
    found: dict[str, dict[str, str | None] | ConnectorError] = {}
    response, connection = client.any_broker.call(request, deadline)
    results = ((result.resource_name, result) for result in response.results)
    for result in match_entries(topics, results, "DescribeConfigs", connection.address).values():
        if result.error_code != ErrorCode.NONE:
            error = broker_error(
                result.error_code,
                f"Looking up the configuration of topic '{result.resource_name}' failed",
                detail=result.error_message,
                rights=(Right("DescribeConfigs", "topic", result.resource_name),),
            )
            if isinstance(error, AccessError):
                name_user(error, client.options)
            found[result.resource_name] = error
        else:
            found[result.resource_name] = {config.name: config.value for config in result.configs}
    return found
