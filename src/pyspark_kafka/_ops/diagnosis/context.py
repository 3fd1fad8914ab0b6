"""The context of one check: the settings, the time, and the results of earlier steps."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient

if TYPE_CHECKING:
    from types import TracebackType

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.cluster.metadata import ClusterMetadata
    from pyspark_kafka._client.client.queries.listener import ListenerStatus
    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka._ops.operations.settings import Settings

Server = tuple[str, int]


@dataclass(slots=True)
class Context:
    """One check on one machine. Use as a context manager: it closes its connections.

    Attributes:
        settings: the options.
        deadline: of the whole check.
        step_ms: the maximum time of one step.
        show_record: whether contents of a record may be shown.
        blocked: the reason why no further step can be judged; empty if they can.
        named: servers whose names this machine can resolve.
        accepting: servers that accept connections.
        listeners: the protocols of the listeners.
        usable: servers that accept this client's login.
        metadata: brokers and judged topics.
        ends: the earliest and the next offset of partitions.
    """

    settings: Settings
    deadline: Deadline
    step_ms: float
    show_record: bool = False
    blocked: str = ""
    named: list[Server] = field(default_factory=list)
    accepting: list[Server] = field(default_factory=list)
    listeners: dict[Server, ListenerStatus] = field(default_factory=dict)
    usable: list[Server] = field(default_factory=list)
    metadata: ClusterMetadata | None = None
    ends: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    _client: KafkaClient | None = None
    _open: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Context:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def step(self) -> Deadline:
        """Return the deadline of a step that begins now."""
        return self.deadline.within(self.step_ms)

    @property
    def client(self) -> KafkaClient:
        """The client of the cluster; created at the first use."""
        if self._client is None:
            self._client = self._open.enter_context(KafkaClient(self.settings.connection))
        return self._client
