"""Which lanes the driver of an exactly-once continuous query fences, and which of two drivers ends; without brokers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka._client.client.transactions.open_transaction import Generation, OpenTransaction, TransactionIdentity
from pyspark_kafka._client.options import ConnectionOptions, ExactlyOnceOptions, WriteOptions
from pyspark_kafka._connector.sink.columns import SinkColumns
from pyspark_kafka._connector.sink.driver import transactional
from pyspark_kafka._connector.sink.driver.transactional import KafkaTransactionalWrite
from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.checkpoint.continuous_files import OWNER, owner_bytes
from pyspark_kafka.errors import DeliveryError

CONNECTION = ConnectionOptions((("b", 9092),))


class Scene:
    """A checkpoint, the brokers, and the drivers that come one after the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
        self.place = place
        self.files = CheckpointFiles(str(place))
        self.fenced: list[str] = []
        scene = self

        class FakeId:
            def __init__(self, _: Any, name: str, __: int) -> None:
                self._name = name

            def fence(self) -> OpenTransaction:
                scene.fenced.append(self._name)
                return OpenTransaction(self._name, TransactionIdentity(1, len(scene.fenced), Generation.V2))

        @contextmanager
        def borrow(_: ConnectionOptions) -> Iterator[Any]:
            yield SimpleNamespace(fetch_metadata=lambda _: SimpleNamespace(cluster_id="one"))

        for name, stand_in in {
            "TransactionalId": FakeId,
            "GroupPositions": lambda *_: SimpleNamespace(fetch=dict),
            "borrow_client": borrow,
        }.items():
            monkeypatch.setattr(transactional, name, stand_in)

    def driver(self) -> KafkaTransactionalWrite:
        settings = ExactlyOnceOptions(checkpoint_location=str(self.place), transactional_id="q")
        return KafkaTransactionalWrite(
            WriteOptions(CONNECTION, "t"), settings, SinkColumns(value=0), query_id="id", source=CONNECTION, epoch_ms=10
        )

    def start(self, run_id: str) -> KafkaTransactionalWrite:
        """Begin a start of the query, as the engine does."""
        self.files.replace(OWNER, owner_bytes(run_id))
        return self.driver()

    def fenced_now(self, write: KafkaTransactionalWrite) -> list[str]:
        """Let a driver take over; return the ids that it fences."""
        self.fenced.clear()
        write.takeOver()
        return sorted(self.fenced)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scene:
    return Scene(monkeypatch, tmp_path)


def run(write: KafkaTransactionalWrite, lanes: int) -> None:
    write.prepareLanes(KafkaSourceOffset({}), lanes)


def test_lanes_of_a_wider_former_run_are_fenced_before_every_later_one(scene: Scene) -> None:
    first = scene.driver()
    first.takeOver()
    run(first, 3)
    run(first, 1)
    assert scene.fenced_now(first) == ["q-0", "q-1", "q-2"]
    second = scene.driver()
    assert scene.fenced_now(second) == ["q-0", "q-1", "q-2"]
    run(second, 2)
    assert scene.fenced_now(scene.driver()) == ["q-0", "q-1", "q-2"]


def test_start_that_was_replaced_before_it_took_over_does_not_end_its_successor(scene: Scene) -> None:
    replaced = scene.start("first")
    successor = scene.start("second")
    successor.takeOver()
    run(successor, 2)
    # Late: it has looked at the owner of the checkpoint before the second one began.
    replaced.takeOver()
    assert scene.fenced_now(successor) == ["q-0", "q-1"]
    run(successor, 2)


def test_start_that_wrote_itself_down_between_two_steps_of_its_successor_ends(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    replaced = scene.start("first")
    # It reads the owner of the checkpoint, and is held up until the second one has taken over.
    with monkeypatch.context() as held_up:
        held_up.setattr(replaced._file, "start", lambda: "first")
        successor = scene.start("second")
        successor.takeOver()
        replaced.takeOver()
    run(successor, 1)
    with pytest.raises(DeliveryError, match="SINK_TAKEN_OVER"):
        replaced.takeOver()


def test_driver_without_an_engine_ends_when_another_one_has_taken_over(scene: Scene) -> None:
    first, second = scene.driver(), scene.driver()
    first.takeOver()
    second.takeOver()
    with pytest.raises(DeliveryError, match="SINK_TAKEN_OVER"):
        first.takeOver()
    run(second, 1)
