"""Answers of brokers about transactions, for `TcpCluster.script`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafka.protocol.admin import DescribeTransactionsResponse, ListTransactionsResponse
from kafka.protocol.metadata import FindCoordinatorResponse


def listing(*entries: tuple[str, str], error_code: int = 0) -> ListTransactionsResponse:
    state_class = ListTransactionsResponse.TransactionState
    return ListTransactionsResponse(
        throttle_time_ms=0,
        error_code=error_code,
        unknown_state_filters=[],
        transaction_states=[
            state_class(transactional_id=name, producer_id=7, transaction_state=state) for name, state in entries
        ],
    )


def describing(states: dict[str, str], errors: dict[str, int] | None = None) -> Callable[[Any], Any]:
    """Answer each id that is asked for with its state; began at 1,000."""

    def answer(request: Any) -> Any:
        state_class = DescribeTransactionsResponse.TransactionState
        return DescribeTransactionsResponse(
            throttle_time_ms=0,
            transaction_states=[
                state_class(
                    error_code=(errors or {}).get(name, 0),
                    transactional_id=name,
                    transaction_state=states.get(name, ""),
                    transaction_timeout_ms=60_000,
                    transaction_start_time_ms=1_000 if states.get(name) == "Ongoing" else -1,
                    producer_id=7,
                    producer_epoch=3,
                    topics=[state_class.TopicData(topic="t", partitions=[2, 0])] if states.get(name) else [],
                )
                for name in request.transactional_ids
            ],
        )

    return answer


def coordinator(broker_id: int, error_code: int = 0) -> Any:
    return FindCoordinatorResponse(
        throttle_time_ms=0, error_code=error_code, error_message=None, node_id=broker_id, host="unused", port=1
    )
