"""Writes the source topics, with kafka-python's producer, all the time."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any

from kafka import KafkaProducer
from kafka.errors import KafkaError

from chaos.ledger import Ledger, Stamp
from kit.log_checker import Log

_STEP_S = 0.05
_PAUSE_S = 0.5
_GIVEN_UP_AFTER_MS = 90_000


@dataclass
class _Flow:
    """How a topic is written: records a second, partitions in turn."""

    topic: str
    rate: float
    partitions: int
    incarnation: int = 0
    written: int = 0
    due: float = 0.0


class SourceWriter:
    """A thread that writes stamped records to several topics at a steady rate, until the block ends.

    Args:
        servers: brokers' own addresses, of all of them.
        ledger: records what was acknowledged.
        seed: of what is random.

    Attributes:
        poison: the part of all records that cannot be read as text.
    """

    def __init__(self, servers: list[str], ledger: Ledger, seed: int = 1) -> None:
        self.poison = 0.0
        self._rng = random.Random(seed)
        self._ledger = ledger
        self._flows: dict[str, _Flow] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._failure: BaseException | None = None
        self._producer: Any = self._connect(servers)
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)

    def __enter__(self) -> SourceWriter:  # noqa: PYI034 - typing.Self needs Python 3.11
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def write(self, topic: str, partitions: int, rate: float) -> None:
        """Begin with a topic, or continue with one that was recreated, or that has more partitions."""
        with self._lock:
            known = self._flows.get(topic)
            incarnation = self._ledger.incarnations.get(topic, 0)
            self._ledger.incarnations[topic] = incarnation
            flow = _Flow(topic, rate, partitions, incarnation, due=time.monotonic())
            if known is not None and known.incarnation == incarnation:
                flow.written = known.written
            self._flows[topic] = flow

    def rate(self, topic: str) -> float:
        """Return how many records a second a topic gets."""
        with self._lock:
            return self._flows[topic].rate

    def pause(self, topic: str) -> float:
        """Write a topic no more; returns its rate when everything that was sent is acknowledged or given up."""
        with self._lock:
            flow = self._flows.pop(topic)
        self._producer.flush()
        return flow.rate

    def move(self, servers: list[str]) -> None:
        """Use other brokers as bootstrap servers from now on."""
        fresh = self._connect(servers)
        with self._lock:
            old, self._producer = self._producer, fresh
        old.flush()
        old.close()

    def stop(self) -> None:
        """Write no more, and wait for what was sent."""
        if not self._stopped.is_set():
            self._stopped.set()
            self._thread.join()
            self._producer.flush()
            self._producer.close()
        if self._failure is not None:
            raise self._failure

    def _connect(self, servers: list[str]) -> Any:
        return KafkaProducer(
            bootstrap_servers=servers,
            acks="all",
            linger_ms=20,
            request_timeout_ms=5_000,
            delivery_timeout_ms=_GIVEN_UP_AFTER_MS,
            retry_backoff_ms=50,
            max_block_ms=5_000,
            metadata_max_age_ms=5_000,
        )

    def _run(self) -> None:
        try:
            while not self._stopped.wait(_STEP_S):
                with self._lock:
                    for flow in self._flows.values():
                        self._write_due(flow)
        except BaseException as error:  # noqa: BLE001 - given to the thread that stops this one
            self._failure = error

    def _write_due(self, flow: _Flow) -> None:
        now = time.monotonic()
        while flow.due <= now:
            flow.due += 1 / flow.rate
            log = Log(flow.topic, flow.written % flow.partitions, flow.incarnation)
            value = Stamp(log, flow.written, self._rng.random() < self.poison).to_value()
            try:
                future = self._producer.send(flow.topic, value, b"%d" % (flow.written % 32), partition=log.partition)
            except (KafkaError, ValueError):
                # Nothing was sent: the producer cannot ask who leads, or has not heard of a new partition yet.
                flow.due = now + _PAUSE_S
                return
            flow.written += 1
            future.add_callback(partial(self._acknowledged, log))
            future.add_errback(lambda _: self._ledger.fail())

    def _acknowledged(self, log: Log, metadata: Any) -> None:
        self._ledger.acknowledge(log, metadata.offset)
