"""One request to each of many brokers, under way at the same time: connecting, sending and receiving.

What lives here: who has been asked and what came back. What must not: what an answer means, and what is done about a
broker that does not answer. Layer: client.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark_kafka.client.net.connection import Connection, wait_readable
from pyspark_kafka.errors import ConnectorError, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from pyspark_kafka.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka.client.deadline import Deadline

_Exchanges = TypeVar("_Exchanges", bound="Exchanges")


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a request.

    Attributes:
        broker_id: who was asked.
        address: where, as errors say it.
        connection: the one that the answer came on, open still and ready for another request until the next call of
            `wait`; None where there is no answer.
        response: decoded; None where there is an error.
        error: why there is none.
    """

    broker_id: int
    address: str
    connection: Connection | None = None
    response: Any = None
    error: ConnectorError | None = None


@dataclass(slots=True)
class _Exchange:
    request: Any
    began_at: float
    address: str
    connection: Connection | None = None
    answer_by: Deadline | None = None
    min_version: int = 0


class Exchanges:
    """Requests to brokers, one each at a time, none of which waits for another.

    Connections that are open are used at once; the others are made side by side. An answer is received as it arrives:
    a broker that stops in the middle of one holds up nobody. Each has `answer_timeout_ms` from when it was sent.

    Runs on: driver and executor; `wait` blocks. Use as a context manager: connections are given back at its end, and
    those that still owe an answer closed.

    Args:
        client: the cluster.
        deadline: for everything.
    """

    def __init__(self, client: KafkaClient, deadline: Deadline) -> None:
        self._client = client
        self._deadline = deadline
        self._dials = client.dials()
        self._under_way: dict[int, _Exchange] = {}
        self._failed: list[Answer] = []
        self._answered: list[tuple[int, Connection]] = []

    def __enter__(self: _Exchanges) -> _Exchanges:  # noqa: PYI019 - typing.Self needs Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._give_back()
        for broker_id, exchange in self._under_way.items():
            if exchange.connection is not None:
                # Giving back closes a connection that still owes an answer.
                self._client.give_back(broker_id, exchange.connection)
        self._under_way.clear()
        self._dials.close()

    def __contains__(self, broker_id: int) -> bool:
        return broker_id in self._under_way

    def __len__(self) -> int:
        return len(self._under_way) + len(self._failed)

    def ask(self, broker_id: int, request: Any, *, min_version: int = 0) -> None:
        """Begin to ask a broker that is not being asked; what becomes of it, `wait` says.

        Args:
            broker_id: whom.
            request: an instance of a class of `client.protocol`, with no version set.
            min_version: with a broker that does not share this version or a newer one, the answer is a ProtocolError
                with condition UNSUPPORTED_VERSION.
        """
        node = self._client.cached_broker(broker_id)
        if node is None:
            # Asks the cluster, which says that there is no such broker, or where it is.
            try:
                node = self._client.find_broker(broker_id, self._deadline)
            except ConnectorError as error:
                self._failed.append(Answer(broker_id, f"broker {broker_id}", error=error))
                return
        exchange = self._under_way[broker_id] = _Exchange(request, time.monotonic(), node.address)
        exchange.min_version = min_version
        connection = self._client.borrow_idle(broker_id)
        if connection is None:
            self._dials.start(broker_id, node.host, node.port, self._deadline)
        else:
            self._send(broker_id, exchange, connection)

    def addresses(self) -> list[str]:
        """Give the addresses of the brokers that something is awaited of."""
        return [exchange.address for exchange in self._under_way.values()]

    def silent_for(self, seconds: float) -> list[int]:
        """Give the brokers that were asked so long ago, and have not answered or been connected to."""
        before = time.monotonic() - seconds
        return [broker_id for broker_id, exchange in self._under_way.items() if exchange.began_at <= before]

    def give_up(self, broker_id: int) -> None:
        """Have nothing more to do with a broker that was asked; its connections are closed."""
        exchange = self._under_way.pop(broker_id)
        if exchange.connection is None:
            self._dials.give_up(broker_id)
        else:
            exchange.connection.close()
        self._client.drop_idle_connections(broker_id)

    def wait(self, timeout_s: float) -> list[Answer]:
        """Wait until something has become of one of the requests, and give all that has.

        Returns:
            Answers and failures; none when the time is over.
        """
        self._give_back()
        readable = self._wait(0.0 if self._failed else timeout_s)
        done, self._failed = self._failed, []
        for broker_id, exchange in list(self._under_way.items()):
            connection, answer_by = exchange.connection, exchange.answer_by
            if connection is None or answer_by is None or not (connection in readable or answer_by.expired):
                continue
            try:
                # Before the look at the clock: an answer that is there counts, however late it is looked at.
                response = connection.receive_arrived()
                if response is None and answer_by.expired:
                    # Raises, and says what is missing.
                    response = connection.receive(answer_by)
            except ConnectorError as error:
                done.append(self._fail(broker_id, error))
                continue
            if response is not None:
                del self._under_way[broker_id]
                self._answered.append((broker_id, connection))
                done.append(Answer(broker_id, connection.address, connection, response))
        return done

    def _wait(self, timeout_s: float) -> set[Connection]:
        """Wait for anything, send to those that are connected by now; give those with something to read."""
        connections = [each.connection for each in self._under_way.values() if each.connection is not None]
        ends = [each.answer_by.remaining_s() for each in self._under_way.values() if each.answer_by is not None]
        others = [self._dials.fileno()] if len(self._dials) else []
        readable = set(wait_readable(connections, max(0.0, min([timeout_s, *ends])), others=others))
        for broker_id, outcome in self._dials.take():
            if isinstance(outcome, Connection):
                self._send(broker_id, self._under_way[broker_id], outcome)
                continue
            node = self._client.cached_broker(broker_id)
            error = outcome if node is None else self._client.explain_unreachable(node, outcome)
            self._failed.append(self._fail(broker_id, error))
        return readable

    def _send(self, broker_id: int, exchange: _Exchange, connection: Connection) -> None:
        if not connection.supports(exchange.request, exchange.min_version):
            del self._under_way[broker_id]
            self._answered.append((broker_id, connection))
            self._failed.append(Answer(broker_id, connection.address, error=_unsupported(connection, exchange)))
            return
        exchange.connection = connection
        exchange.answer_by = self._deadline.within(self._client.options.answer_timeout_ms)
        try:
            connection.send(exchange.request, timeout_ms=exchange.answer_by.remaining_s() * 1000)
        except ConnectorError as error:
            self._failed.append(self._fail(broker_id, error))

    def _fail(self, broker_id: int, error: ConnectorError) -> Answer:
        exchange = self._under_way.pop(broker_id)
        if exchange.connection is not None:
            exchange.connection.close()
        # Who leads instead must not be asked of a broker that has just been silent.
        self._client.drop_idle_connections(broker_id)
        return Answer(broker_id, exchange.address, error=error)

    def _give_back(self) -> None:
        for broker_id, connection in self._answered:
            self._client.give_back(broker_id, connection)
        self._answered.clear()


def _unsupported(connection: Connection, exchange: _Exchange) -> ProtocolError:
    return ProtocolError(
        f"{connection.address} does not know {exchange.request.name} from version {exchange.min_version} on.",
        condition="UNSUPPORTED_VERSION",
        hint="The broker is too old, or a gateway leaves this request out.",
        facts={"broker": connection.address, "request": exchange.request.name},
    )


def ask_all(
    client: KafkaClient, requests: Mapping[int, Any], deadline: Deadline, *, min_version: int = 0
) -> dict[int, Answer]:
    """Ask many brokers, each for something of its own, side by side; give what became of each request.

    Runs on: driver and executor; blocks until all have answered or failed, or time is over.

    Args:
        client: the cluster.
        requests: by broker id.
        deadline: for all.
        min_version: see `Exchanges.ask`.
    """
    found: dict[int, Answer] = {}
    with Exchanges(client, deadline) as exchanges:
        for broker_id, request in requests.items():
            exchanges.ask(broker_id, request, min_version=min_version)
        while len(exchanges):
            for answer in exchanges.wait(deadline.remaining_s()):
                found[answer.broker_id] = answer
            if deadline.expired:
                break
        for broker_id in requests.keys() - found.keys():
            address = node.address if (node := client.cached_broker(broker_id)) is not None else f"broker {broker_id}"
            found[broker_id] = Answer(broker_id, address, error=deadline.error(f"Asking {address}"))
    return found
