"""Rights of users: granted and revoked. Queries do not need it: it is for brokers of tests. Layer: client."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from pyspark_kafka.client.retry import attempts
from pyspark_kafka.client.wire.messages import (
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
    ErrorCode,
    broker_error,
)
from pyspark_kafka.client.wire.missing_rights import Right

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark_kafka.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka.client.deadline import Deadline


_ALTER = Right("Alter", "cluster")
_DESCRIBE = Right("Describe", "cluster", granted_by="Alter")


class AclResource(IntEnum):
    """What a right is on (`org.apache.kafka.common.resource.ResourceType`)."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class AclOperation(IntEnum):
    """What a right allows (`org.apache.kafka.common.acl.AclOperation`)."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14


@dataclass(frozen=True, slots=True)
class AccessRule:
    """A right of one user, from any host.

    Attributes:
        user: the name, without `User:`.
        operation: what is allowed.
        resource: on what kind of thing.
        name: its name; of the cluster: `kafka-cluster`.
        prefixed: whether the name is the beginning of names.
        allowed: False: it is denied, which takes precedence.
    """

    user: str
    operation: AclOperation
    resource: AclResource
    name: str
    prefixed: bool = False
    allowed: bool = True


_ANY_HOST = "*"
_LITERAL, _PREFIXED = 3, 4
_DENY, _ALLOW = 2, 3
CLUSTER_NAME = "kafka-cluster"


def create_acls(client: KafkaClient, rights: Iterable[AccessRule]) -> None:
    """Grant rights, and wait until a broker knows them; a right that is there already stays.

    Runs on: driver; blocks.

    Raises:
        AccessError: not allowed.
        BrokerError: refused, e.g. SECURITY_DISABLED where no rights are checked.
        DeadlineError: not done in time.
    """
    wanted = list(rights)
    creations = [
        CreateAclsRequest.AclCreation(
            resource_type=int(right.resource),
            resource_name=right.name,
            resource_pattern_type=_PREFIXED if right.prefixed else _LITERAL,
            principal=f"User:{right.user}",
            host=_ANY_HOST,
            operation=int(right.operation),
            permission_type=_ALLOW if right.allowed else _DENY,
        )
        for right in wanted
    ]

    def attempt(step: Deadline) -> None:
        response = client.call(CreateAclsRequest(creations=creations), deadline=step)
        for result in response.results:
            if result.error_code != ErrorCode.NONE:
                what = "Granting a right failed"
                raise broker_error(result.error_code, what, detail=result.error_message, rights=(_ALTER,))

    deadline = client.deadline()
    client.retrying("Granting rights", deadline, attempt)
    _wait(client, wanted, deadline, there=True)


def delete_acls(client: KafkaClient, rights: Iterable[AccessRule]) -> int:
    """Revoke rights, wait until a broker knows of it, and return the number of those that were there.

    Runs on: driver; blocks.

    Raises:
        AccessError: not allowed.
        BrokerError: refused.
        DeadlineError: not done in time.
    """
    wanted = list(rights)
    filters = [DeleteAclsRequest.DeleteAclsFilter(**_filter(right)) for right in wanted]

    def attempt(step: Deadline) -> int:
        response = client.call(DeleteAclsRequest(filters=filters), deadline=step)
        for result in response.filter_results:
            if result.error_code != ErrorCode.NONE:
                what = "Revoking a right failed"
                raise broker_error(result.error_code, what, detail=result.error_message, rights=(_ALTER,))
        return sum(len(result.matching_acls) for result in response.filter_results)

    deadline = client.deadline()
    deleted = client.retrying("Revoking rights", deadline, attempt)
    _wait(client, wanted, deadline, there=False)
    return deleted


def _filter(right: AccessRule) -> dict[str, Any]:
    """Return the fields of a filter that fits one right only."""
    return {
        "resource_type_filter": int(right.resource),
        "resource_name_filter": right.name,
        "pattern_type_filter": _PREFIXED if right.prefixed else _LITERAL,
        "principal_filter": f"User:{right.user}",
        "host_filter": _ANY_HOST,
        "operation": int(right.operation),
        "permission_type": _ALLOW if right.allowed else _DENY,
    }


def _wait(client: KafkaClient, rights: Iterable[AccessRule], deadline: Deadline, *, there: bool) -> None:
    """Wait until a broker's authorizer has the rights, or has none of them."""
    for right in rights:
        for _ in attempts(client.backoff(), deadline=deadline):
            response = client.call(DescribeAclsRequest(**_filter(right)), deadline=deadline)
            if response.error_code != ErrorCode.NONE:
                what = "Looking up a right failed"
                raise broker_error(response.error_code, what, detail=response.error_message, rights=(_DESCRIBE,))
            if bool(response.resources) == there:
                break
        else:
            raise deadline.error("Waiting until brokers know the rights")
