"""The decision of a micro-batch whose tasks commit; the properties are in `tests/property`."""

from __future__ import annotations

import pytest

from kit.fakes.simulated_task_commits import Simulation
from pyspark_kafka.client.transactions.open_transaction import Generation


class LostResponses(Simulation):
    """Nothing happens but that the responses to the first ends of transactions are lost."""

    left = 0

    def happens(self, what: str) -> bool:
        if what != "lost_responses" or not self.left:
            return False
        self.left -= 1
        return True


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_marker_whose_response_is_lost_is_found_and_not_written_again(lost: int) -> None:
    # In V2 an end is sent again, until its response is there.
    world = LostResponses(0, Generation.V1)
    # The time of a marker is that of its write.
    world.coordinator.now = 1
    world.left = lost
    world.drive()
    world.check()
    # The decision, and that it is carried out.
    assert [marker.decision is not None and marker.decision.is_complete for marker in world.coordinator.markers] == [
        False, True,
    ]  # fmt: skip
