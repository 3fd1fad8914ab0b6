"""FindCoordinator: which broker keeps the state of a transactional id or of a consumer group, and calls to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pyspark_kafka._client.client.wire.api_versions import MAX_FIND_VERSION
from pyspark_kafka._client.client.wire.messages import (
    ErrorCode,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    broker_error,
)
from pyspark_kafka._client.client.wire.missing_rights import Right
from pyspark_kafka.errors import BrokerError, ConnectorError, DeadlineError, ProtocolError, TransportError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.net.connection import Connection
    from pyspark_kafka._client.client.waiting.deadline import Deadline

_T = TypeVar("_T")

_GROUP_KEY, _TRANSACTION_KEY = 0, 1
# Codes after which the coordinator has to be looked up again.
_MOVED = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})


class CoordinatorCalls:
    """Calls to the coordinator of one transactional id or consumer group, wherever it is by now.

    Runs on: driver and executor; one thread; `run` blocks for at most `api_timeout_ms`. Does not pickle.

    Attributes:
        broker_id: the coordinator of the last response; None before the first call, and after a failure.

    Args:
        client: the cluster; not used by anyone else in the meantime.
        find: returns the broker id of the coordinator, as `find_coordinator` does.
    """

    def __init__(self, client: KafkaClient, find: Callable[[Deadline], int]) -> None:
        self._client = client
        self._find = find
        self.broker_id: int | None = None
        # Whether the coordinator could not be reached at its last address.
        self._was_unreachable = False

    def run(
        self,
        step: str,
        attempt: Callable[[Connection, Deadline], _T],
        *,
        lost: Callable[[ConnectorError, bool], ConnectorError | None] | None = None,
        deadline: Deadline | None = None,
    ) -> _T:
        """Run `attempt` with a connection to the coordinator until it succeeds, as `retry.retrying` does.

        The coordinator is looked up again after a failure that may mean that it moved.

        Args:
            step: what is done, as the subject of the sentence in an error.
            attempt: sends the request.
            lost: builds the final error for a missing response, or returns None to try again; gets the failure, and
                whether the request may have been sent. Without it, the request is always tried again.
            deadline: for all attempts; None takes `api_timeout_ms`.
        """

        def guarded(deadline: Deadline) -> _T:
            deadline = deadline.within(self._client.options.answer_timeout_ms)
            connection: Connection | None = None
            try:
                if self._was_unreachable:
                    # A broker that has started again may be at another address.
                    self._client.fetch_metadata((), deadline)
                    self._was_unreachable = False
                if self.broker_id is None:
                    self.broker_id = self._find(deadline)
                connection = self._client.connection_to(self.broker_id, deadline)
                return attempt(connection, deadline)
            except ConnectorError as error:
                is_lost = isinstance(error, (TransportError, DeadlineError))
                self._was_unreachable = self._was_unreachable or (is_lost and connection is None)
                if is_lost or (isinstance(error, BrokerError) and error.code in _MOVED):
                    self.broker_id = None
                # Without a connection nothing was sent.
                if is_lost and lost is not None and (final := lost(error, connection is not None)) is not None:
                    raise final from error
                raise

        return self._client.retrying(step, deadline or self._client.deadline(), guarded)


def find_coordinator(client: KafkaClient, transactional_id: str, deadline: Deadline) -> int:
    """Request a transactional id's coordinator from any broker, once; return its broker id.

    Runs on: driver; blocks.

    Raises:
        AccessError: the user may not describe the transactional id.
        BrokerError: the coordinator is not available now, or the broker refused.
        ProtocolError: the brokers support no transactions (condition UNSUPPORTED_VERSION).
        DeadlineError: no response in time.
        TransportError: no broker can be reached.
    """
    request = FindCoordinatorRequest(key=transactional_id, key_type=_TRANSACTION_KEY)
    response, connection = client.any_broker.call(request, deadline, max_version=MAX_FIND_VERSION)
    if not connection.supports(InitProducerIdRequest):
        raise ProtocolError(
            f"{connection.address} knows no transactions. Nothing was written.",
            condition="UNSUPPORTED_VERSION",
            hint="Exactly-once writes need Kafka 0.11 or newer.",
            parameters={"broker": connection.address},
        )
    right = Right("Describe", "transactional-id", transactional_id, granted_by="Write")
    whose = f"transactional id '{transactional_id}'"
    return _broker_id(response, connection, whose, right, transactional_id=transactional_id)


def find_group_coordinator(client: KafkaClient, group_id: str, deadline: Deadline) -> int:
    """Request a consumer group's coordinator from any broker, once; return its broker id.

    Runs on: driver and executor; blocks.

    Raises:
        AccessError: the user may not describe the group.
        BrokerError: the coordinator is not available now, or the broker refused.
        DeadlineError: no response in time.
        TransportError: no broker can be reached.
    """
    request = FindCoordinatorRequest(key=group_id, key_type=_GROUP_KEY)
    response, connection = client.any_broker.call(request, deadline, max_version=MAX_FIND_VERSION)
    right = Right("Describe", "group", group_id, granted_by="Read")
    return _broker_id(response, connection, f"consumer group '{group_id}'", right, group_id=group_id)


def _broker_id(response: Any, connection: Connection, whose: str, right: Right, **parameters: str) -> int:
    """Return the coordinator that a response names."""
    if response.error_code != ErrorCode.NONE:
        raise broker_error(
            response.error_code,
            f"Looking up the coordinator of {whose} at {connection.address} failed",
            rights=(right,),
            **parameters,
            broker=connection.address,
        )
    return int(response.node_id)
