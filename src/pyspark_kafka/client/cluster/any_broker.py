"""A question that any broker can answer: asked of one, and of another one as well if that is silent.

Layer: client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_kafka.client.net.connection import wait_readable
from pyspark_kafka.errors import ConnectorError

if TYPE_CHECKING:
    from pyspark_kafka.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka.client.deadline import Deadline
    from pyspark_kafka.client.net.connection import Connection

# A broker that has not begun to answer by then is not waited for alone. One that has died without closing its
# connections looks just like it.
PATIENCE_S = 1.0


def call_any(
    client: KafkaClient,
    request: Any,
    deadline: Deadline,
    *,
    max_version: int | None = None,
    patience_s: float = PATIENCE_S,
) -> tuple[Any, Connection]:
    """Send a request to whichever broker and wait for the answer; another one is asked after a while of silence.

    Only for requests that change nothing: two brokers may get it.

    Runs on: driver and executor; blocks, no longer than `answer_timeout_ms` after the last one was asked.

    Args:
        client: the cluster.
        request: an instance of a class of `client.protocol`, with no version set.
        deadline: for all of it.
        max_version: an upper bound for the version.
        patience_s: how long one broker may take until it begins to answer.

    Returns:
        The decoded answer, and the connection that it came on.

    Raises:
        ConnectorError: as `KafkaClient.any_connection` and `Connection.call`.
    """
    asked = client.any_connection(deadline)
    answer_by = deadline.within(client.options.answer_timeout_ms)
    asked.send(request, max_version=max_version, timeout_ms=answer_by.remaining_s() * 1000)
    if asked.readable(min(patience_s, answer_by.remaining_s())):
        return asked.receive(answer_by), asked
    other: Connection | None = None
    try:
        other = client.another_connection(asked, answer_by)
        if other is not None:
            answer_by = deadline.within(client.options.answer_timeout_ms)
            other.send(request, max_version=max_version, timeout_ms=answer_by.remaining_s() * 1000)
    except ConnectorError:
        # Nobody else can be asked, so the silent one has the rest of the time.
        other = None
    if other is None:
        return asked.receive(answer_by), asked
    try:
        response, answered = _first_answer([asked, other], answer_by)
    finally:
        # The answer that is still owed is of no use.
        for connection in (asked, other):
            if connection.in_flight:
                connection.close()
    if answered is other:
        client.keep(other)
    return response, answered


def _first_answer(connections: list[Connection], deadline: Deadline) -> tuple[Any, Connection]:
    while True:
        ready = wait_readable(connections, deadline.remaining_s())
        if not ready:
            # Says that there was no answer in time.
            return connections[0].receive(deadline), connections[0]
        for connection in ready:
            try:
                response = connection.receive_arrived()
            except ConnectorError:
                connections.remove(connection)
                if not connections:
                    raise
                continue
            if response is not None:
                return response, connection
