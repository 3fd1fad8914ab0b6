"""Requests that set configuration values, of a topic or of a broker. Layer: client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_kafka.client.wire.messages import ErrorCode, IncrementalAlterConfigsRequest, broker_error
from pyspark_kafka.client.wire.missing_rights import Right

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka.client.deadline import Deadline

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
_SET_OPERATION = 0


def build_alter_request(resource: int, name: str, configs: Mapping[str, str]) -> Any:
    """Build the request that sets values; the others stay as they are.

    Args:
        resource: `TOPIC_RESOURCE` or `BROKER_RESOURCE`.
        name: the topic, or the broker's id.
        configs: value by name.
    """
    resource_class = IncrementalAlterConfigsRequest.AlterConfigsResource
    return IncrementalAlterConfigsRequest(
        resources=[
            resource_class(
                resource_type=resource,
                resource_name=name,
                configs=[
                    resource_class.AlterableConfig(name=name, config_operation=_SET_OPERATION, value=value)
                    for name, value in configs.items()
                ],
            )
        ],
        validate_only=False,
    )


def raise_refused(response: Any, what: str, right: Right) -> None:
    """Raise the first error of a response to that request.

    Args:
        response: to `build_alter_request`.
        what: was asked for.
        right: that it needs.

    Raises:
        BrokerError: refused, e.g. INVALID_CONFIG.
        AccessError: not allowed.
    """
    for entry in response.responses:
        if entry.error_code != ErrorCode.NONE:
            raise broker_error(entry.error_code, f"{what} failed", detail=entry.error_message, rights=(right,))


def alter_broker_configs(client: KafkaClient, broker_id: int, configs: Mapping[str, str]) -> None:
    """Set values of a running broker that can be changed without a restart (KIP-226).

    Runs on: driver; blocks. The broker uses the values a moment later.

    Raises:
        BrokerError: refused, e.g. INVALID_REQUEST.
        AccessError: not allowed.
        DeadlineError: not done in time.
    """
    what = f"Changing the configuration of broker {broker_id}"
    right = Right("AlterConfigs", "cluster")

    def attempt(step: Deadline) -> None:
        request = build_alter_request(BROKER_RESOURCE, str(broker_id), configs)
        raise_refused(client.call(request, broker_id=broker_id, deadline=step), what, right)

    client.retrying(what, client.deadline(), attempt)
