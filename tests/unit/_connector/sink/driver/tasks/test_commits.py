"""The decision of a micro-batch whose tasks commit; the properties are in `tests/property`."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest

from kit.fakes.simulated_task_commits import SINK, TASKS, TIMEOUT_MS, SimulatedCalls, Simulation
from pyspark_kafka._client.client.transactions.open_transaction import Generation
from pyspark_kafka._connector.sink.commit_marker import CommitMarker
from pyspark_kafka._connector.sink.driver.tasks.commits import TaskCommits
from pyspark_kafka._connector.sink.tasks.transactions import CommitDecision
from pyspark_kafka.errors import DeliveryError


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


class StandsStill(Simulation):
    """The driver stands still with a transaction of the sink open: when it writes its marker of that number."""

    marker = 0
    takes_over = False

    def between(self) -> None:
        entry = self.coordinator.entries.get(SINK)
        if entry is None or entry.open_at is None:
            return
        if len(self.coordinator.markers) == self.marker:
            self.marker = -1
            self.coordinator.now += TIMEOUT_MS
            self.coordinator.time_out()
            if self.takes_over:
                self.coordinator.init(SINK)

    def commit(self) -> None:
        """Run a micro-batch."""
        commits = TaskCommits(SimulatedCalls(self), SINK, TIMEOUT_MS)
        ours = CommitMarker(SINK, "query", 0, "print 0")
        planning = commits.plan(ours)
        commits.commit_batch(planning, ours, [self.attempt(planning, 0, number) for number in range(TASKS)])


@pytest.mark.parametrize(
    ("generation", "marker", "takes_over", "message"),
    [
        (Generation.V1, 0, False, r"^\[TRANSACTION_TIMED_OUT\] The decision to commit, .* Nothing of the batch is"),
        (Generation.V1, 1, False, r"^\[TRANSACTION_TIMED_OUT\] The note .* is committed as it was decided"),
        (Generation.V2, 0, False, r"^\[TRANSACTION_TIMED_OUT\] Batch 0 .* is not decided; .* Nothing of the batch is"),
        *((each, marker, True, r"^\[SINK_TAKEN_OVER\] Another") for each in Generation for marker in (0, 1)),
    ],
)
def test_error_of_a_timed_out_transaction_differs_from_a_takeover(
    generation: Generation, marker: int, takes_over: bool, message: str
) -> None:
    world = StandsStill(0, generation)
    world.marker, world.takes_over = marker, takes_over
    with pytest.raises(DeliveryError, match=message):
        world.commit()
    assert len(world.coordinator.committed) == marker * TASKS


def test_note_that_has_timed_out_is_written_again_by_its_owner() -> None:
    world = StandsStill(0, Generation.V2)
    world.marker = 1
    world.commit()
    world.check()
    newest = world.coordinator.markers[-1].decision
    assert newest is not None
    assert newest.is_complete
    assert not newest.lost


@pytest.mark.parametrize("generation", list(Generation))
@pytest.mark.parametrize("before", ["nothing", "a batch of the driver", "a batch of tasks"])
@pytest.mark.parametrize("is_decided", [False, True], ids=["not decided", "decided"])
def test_batch_that_is_given_up_aborts_its_tasks_only_if_it_is_not_decided(
    generation: Generation, before: str, is_decided: bool
) -> None:
    world = LostResponses(0, generation)
    if before == "a batch of tasks":
        world.drive()
    elif before == "a batch of the driver":
        world.coordinator.markers.append(CommitMarker(SINK, "query", 0, "print 0"))
        world.batch = 1
    calls = SimulatedCalls(world)
    commits = TaskCommits(calls, SINK, TIMEOUT_MS)
    ours = CommitMarker(SINK, "query", world.batch, "print")
    planning = commits.plan(ours)
    tasks = [world.attempt(planning, world.batch, number) for number in range(TASKS)]
    if is_decided:
        decision = CommitDecision(planning.pool, planning.transaction.identity, tuple(tasks))
        calls.write(planning.transaction, replace(ours, decision=decision))
    commits.abort(planning)
    assert len(calls.open_tasks(f"{SINK}-")) == (TASKS if is_decided else 0)
    # The next planning carries out what is decided.
    commits.plan(replace(ours, batch_id=world.batch + 1))
    seen = [part[:2] for part in world.coordinator.committed if part[0] == world.batch]
    assert seen == ([(world.batch, number) for number in range(TASKS)] if is_decided else [])


class LosesTasks(LostResponses):
    """Brokers abort the transactions of the tasks as soon as they are decided to be committed."""

    is_lost = False

    def between(self) -> None:
        if self.coordinator.markers and not self.is_lost:
            self.is_lost = True
            self.coordinator.now += TIMEOUT_MS
            self.coordinator.time_out()


@pytest.mark.parametrize("generation", list(Generation))
def test_lost_tasks_are_reported_by_each_planning_of_their_batch_and_by_no_other(generation: Generation) -> None:
    world = LosesTasks(0, generation)
    world.drive()
    assert (world.incomplete, world.batch) == ([0], 0)
    commits = TaskCommits(SimulatedCalls(world), SINK, TIMEOUT_MS)
    ours = CommitMarker(SINK, "query", 0, "print 0")
    for _ in range(2):
        with pytest.raises(DeliveryError, match=r"^\[SINK_COMMIT_INCOMPLETE\]"):
            commits.plan(ours)
    planning = commits.plan(replace(ours, batch_id=1))
    tasks = [world.attempt(planning, 1, number) for number in range(TASKS)]
    commits.commit_batch(planning, replace(ours, batch_id=1), tasks)
    assert [part[:2] for part in world.coordinator.committed] == [(1, number) for number in range(TASKS)]


class WaitsForOthers(LostResponses):
    """Each request of a planning takes a while: transactions of other sinks are waited for."""

    is_planned = False

    def between(self) -> None:
        if not self.is_planned:
            self.coordinator.now += TIMEOUT_MS


def test_time_of_tasks_begins_when_their_planning_is_done() -> None:
    world = WaitsForOthers(0, Generation.V2)
    commits = TaskCommits(SimulatedCalls(world), SINK, TIMEOUT_MS)
    ours = CommitMarker(SINK, "query", 0, "print 0")
    planning = commits.plan(ours)
    world.is_planned = True
    assert planning.planned_at_ms == world.coordinator.now
    commits.commit_batch(planning, ours, [world.attempt(planning, 0, number) for number in range(TASKS)])
    assert len(world.coordinator.committed) == TASKS


@pytest.mark.parametrize(("elapsed_ms", "is_decided"), [(TIMEOUT_MS * 3 // 4, True), (TIMEOUT_MS * 3 // 4 + 1, False)])
def test_batch_is_decided_only_while_a_quarter_of_the_timeout_is_left(elapsed_ms: int, is_decided: bool) -> None:
    world = LostResponses(0, Generation.V2)
    # As a clock: far more than a timeout since its zero.
    world.coordinator.now = 100 * TIMEOUT_MS
    commits = TaskCommits(SimulatedCalls(world), SINK, TIMEOUT_MS)
    ours = CommitMarker(SINK, "query", 0, "print 0")
    planning = commits.plan(ours)
    tasks = [world.attempt(planning, 0, number) for number in range(TASKS)]
    world.coordinator.now += elapsed_ms
    text = rf"^\[TRANSACTION_TIMED_OUT\] Batch 0 of query query was planned {elapsed_ms} ms ago, and is not decided"
    with nullcontext() if is_decided else pytest.raises(DeliveryError, match=text):
        commits.commit_batch(planning, ours, tasks)
    assert len(world.coordinator.committed) == (TASKS if is_decided else 0)
