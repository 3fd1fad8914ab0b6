"""A second broker for the run, for tests that stop, kill or damage one."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.testing import EmbeddedKafka

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class MortalBroker:
    """A broker that a test may stop, whose data are on a known place on disk.

    Attributes:
        kafka: the broker.
        data_dir: its log directory.
    """

    def __init__(self, kafka: EmbeddedKafka, data_dir: Path) -> None:
        self.kafka = kafka
        self.data_dir = data_dir
        self._starting: threading.Thread | None = None

    @property
    def bootstrap_servers(self) -> str:
        """The address, the same after a restart."""
        return self.kafka.bootstrap_servers

    def start_soon(self) -> None:
        """Start it in another thread, while the test goes on against a broker that is not there."""
        self._starting = threading.Thread(target=self.kafka.start)
        self._starting.start()

    def wait(self) -> None:
        """Wait until it runs, whatever the test before left."""
        starting, self._starting = self._starting, None
        if starting is not None:
            starting.join()
        self.kafka.start()


@pytest.fixture(scope="session")
def _mortal_broker_of_the_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MortalBroker]:
    data_dir = tmp_path_factory.mktemp("broker") / "data"
    # The cleaner looks for work at once, not every 15 s; nothing else differs from the broker of the other tests.
    with EmbeddedKafka(heap="256m", data_dir=data_dir, properties={"log.cleaner.backoff.ms": "50"}) as kafka:
        yield MortalBroker(kafka, data_dir)


@pytest.fixture
def mortal_broker(_mortal_broker_of_the_run: MortalBroker) -> Iterator[MortalBroker]:
    """A running broker that the test may stop, and need not start again."""
    _mortal_broker_of_the_run.wait()
    yield _mortal_broker_of_the_run
    _mortal_broker_of_the_run.wait()
