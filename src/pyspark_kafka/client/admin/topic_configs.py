"""DescribeConfigs: the configuration of a topic, and where each value comes from. Layer: client."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from pyspark_kafka.client.wire.messages import DescribeConfigsRequest, ErrorCode, broker_error
from pyspark_kafka.client.wire.missing_rights import Right

if TYPE_CHECKING:
    from pyspark_kafka.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka.client.deadline import Deadline

TOPIC_RESOURCE = 2


class ConfigSource(str, Enum):
    """Where a value of a topic's configuration comes from, by the words of Kafka's tools."""

    TOPIC = "topic"
    BROKER = "broker, set at run time"
    CLUSTER = "all brokers, set at run time"
    BROKER_FILE = "broker's properties file"
    DEFAULT = "default"
    UNKNOWN = "not told"


# The numbers on the wire: Java `DescribeConfigsResponse.ConfigSource`.
_SOURCES = {
    1: ConfigSource.TOPIC,
    2: ConfigSource.BROKER,
    3: ConfigSource.CLUSTER,
    4: ConfigSource.BROKER_FILE,
    5: ConfigSource.DEFAULT,
}


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """One value of a topic's configuration.

    Attributes:
        name: by Kafka's name.
        value: as text; None if the broker hides it.
        source: where it comes from.
    """

    name: str
    value: str | None
    source: ConfigSource


def fetch_topic_configs(client: KafkaClient, topic: str, deadline: Deadline | None = None) -> tuple[TopicConfig, ...]:
    """Return the configuration of a topic, defaults included, by name.

    Runs on: driver; blocks.

    Raises:
        AccessError: the user may not see it (DESCRIBE_CONFIGS).
        BrokerError: refused.
        DeadlineError: no response in time.
        TransportError: no broker can be reached.
    """

    def attempt(step: Deadline) -> tuple[TopicConfig, ...]:
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name=topic, configuration_keys=None
        )
        return _parse_response(client.call(DescribeConfigsRequest(resources=[resource]), deadline=step), topic)

    return client.retrying("Describing a topic's configuration", deadline or client.deadline(), attempt)


def _parse_response(response: Any, topic: str) -> tuple[TopicConfig, ...]:
    found: list[TopicConfig] = []
    for result in response.results:
        if result.error_code != ErrorCode.NONE:
            what = f"Describing the configuration of topic '{topic}' failed"
            rights = (Right("DescribeConfigs", "topic", topic),)
            raise broker_error(result.error_code, what, detail=result.error_message, rights=rights)
        found.extend(TopicConfig(each.name, each.value, _source(each)) for each in result.configs)
    return tuple(sorted(found, key=lambda config: config.name))


def _source(entry: Any) -> ConfigSource:
    # Version 0 tells only whether a value is a default.
    if entry.is_default:
        return ConfigSource.DEFAULT
    return _SOURCES.get(entry.config_source, ConfigSource.UNKNOWN)
