"""Drivers, tasks and a coordinator of one exactly-once sink whose tasks commit, in one thread, by a seed.

A driver can be paused before any of its requests, for as long as other drivers plan and commit whole micro-batches, and
can die there; time passes; attempts of tasks are slow, late, doubled or dead. Nobody tells a driver that another one is
at work. What readers would see is compared with what was decided. Parts may be lost only by the timeout of transactions
that had a quarter of it left when they were decided to be committed: their driver died after that, or stood still.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from pyspark_kafka._client.client.transactions.errors import TransactionInDoubtError, TransactionLostError
from pyspark_kafka._client.client.transactions.open_transaction import Generation, OpenTransaction, TransactionIdentity
from pyspark_kafka._connector.sink.commit_marker import CommitMarker
from pyspark_kafka._connector.sink.driver.tasks.commits import TaskCommitCalls, TaskCommits
from pyspark_kafka._connector.sink.tasks.transactions import Planning, TaskTransaction
from pyspark_kafka._connector.sink.transactional_ids import task_prefix
from pyspark_kafka.errors import ConnectorError

SINK = "sink"
TIMEOUT_MS = 1_000
TASKS = 3
# Of a producer id; brokers have 32,767.
EPOCHS = 20


def identity_of(number: int, generation: Generation) -> TransactionIdentity:
    """Return the identity after a number of epochs; a producer id has few of them here."""
    return TransactionIdentity(7 + number // EPOCHS, number % EPOCHS, generation)


def number_of(identity: TransactionIdentity) -> int:
    """Return the number of epochs before an identity."""
    return (identity.producer_id - 7) * EPOCHS + identity.producer_epoch


class DeathError(Exception):
    """A driver was killed."""


class BrokenInvariantError(AssertionError):
    """What readers see is not what it must be."""


@dataclass
class Entry:
    """The state of one transactional id."""

    epoch: int = -1
    last_epoch: int = -1
    open_at: int | None = None
    content: list[tuple[int, int, int]] = field(default_factory=list)
    last_result: bool | None = None
    marker: CommitMarker | None = None
    marked_in: int = -1
    # The epoch whose transaction has timed out, until the next owner.
    timed_out: int = -1


class Coordinator:
    """Transactional ids, as brokers of either generation keep them.

    Attributes:
        committed: (batch, task, attempt) of each part that readers see, in order.
        markers: the committed markers of the sink.
        now: milliseconds.
        too_late: micro-batches that were decided when a transaction of theirs was gone, or almost.
        timed_out: id and epoch of each transaction that brokers have aborted after its timeout.
    """

    def __init__(self, generation: Generation) -> None:
        self.generation = generation
        self.entries: dict[str, Entry] = {}
        self.committed: list[tuple[int, int, int]] = []
        self.markers: list[CommitMarker] = []
        self.now = 0
        self.too_late: list[int] = []
        self.timed_out: set[tuple[str, int]] = set()

    def init(self, name: str) -> OpenTransaction:
        """Take an id over."""
        entry = self.entries.setdefault(name, Entry())
        if entry.open_at is not None:
            self._end(entry, commit=False)
            entry.epoch += 1
        entry.epoch, entry.last_epoch, entry.last_result = entry.epoch + 1, -1, None
        entry.timed_out = -1
        return self._transaction(name, entry)

    def write(self, transaction: OpenTransaction, part: tuple[int, int, int] | CommitMarker) -> None:
        """Write in a transaction."""
        entry = self.entries[transaction.name]
        if entry.epoch != number_of(transaction.identity):
            raise TransactionLostError("fenced", condition="TRANSACTION_LOST")
        if entry.open_at is None:
            entry.open_at = self.now
        if isinstance(part, CommitMarker):
            # Each writer begins with sequence 0: brokers drop what has come under this epoch before.
            if entry.marked_in != entry.epoch:
                # As a record, which does not have every value.
                data = replace(part, committed_at_ms=self.now).to_bytes()
                entry.marker, entry.marked_in = CommitMarker.from_bytes(data, "simulated"), entry.epoch
        else:
            entry.content.append(part)

    def end(self, transaction: OpenTransaction, *, commit: bool) -> bool:
        """End a transaction; False if it is not there. A repeated end is recognized."""
        entry, epoch = self.entries[transaction.name], number_of(transaction.identity)
        if entry.epoch == epoch and entry.open_at is not None:
            self._end(entry, commit=commit)
            entry.last_epoch, entry.last_result = epoch, commit
            entry.epoch += self.generation is Generation.V2
            return True
        return entry.last_epoch == epoch and entry.last_result is commit

    def time_out(self) -> None:
        """Abort what is open for too long; the epoch is raised."""
        for name, entry in self.entries.items():
            if entry.open_at is not None and self.now - entry.open_at >= TIMEOUT_MS:
                self._end(entry, commit=False)
                entry.timed_out = entry.epoch
                self.timed_out.add((name, entry.epoch))
                entry.epoch, entry.last_epoch = entry.epoch + 1, -1

    def following(self, name: str) -> OpenTransaction:
        """Return the transaction after one that has ended."""
        return self._transaction(name, self.entries[name])

    def _end(self, entry: Entry, *, commit: bool) -> None:
        if commit:
            self.committed += entry.content
            if entry.marker is not None:
                self.markers.append(entry.marker)
                self._check_decision(entry.marker)
        entry.open_at, entry.content, entry.marker = None, [], None

    def _check_decision(self, marker: CommitMarker) -> None:
        for task in marker.decision.tasks if marker.decision else ():
            entry = self.entries[task.transaction.name]
            is_open = entry.open_at is not None and entry.epoch == number_of(task.transaction.identity)
            if not is_open or self.now - (entry.open_at or 0) > TIMEOUT_MS * 3 // 4:
                self.too_late.append(marker.batch_id)

    def _transaction(self, name: str, entry: Entry) -> OpenTransaction:
        return OpenTransaction(name, identity_of(entry.epoch, self.generation))


class SimulatedCalls(TaskCommitCalls):
    """The requests of one driver. Before each of them something else may happen, and the driver may die."""

    def __init__(self, world: Simulation) -> None:
        self._world, self._coordinator = world, world.coordinator

    def fence(self) -> OpenTransaction:
        self._world.between()
        return self._coordinator.init(SINK)

    def renew(self, transaction: OpenTransaction) -> OpenTransaction:
        self._world.between()
        entry, epoch = self._coordinator.entries[SINK], number_of(transaction.identity)
        # In V2 the owner stays the owner when its transaction has timed out.
        is_owner = entry.timed_out == epoch and self._coordinator.generation is Generation.V2
        if entry.epoch != epoch and not is_owner:
            raise TransactionLostError("taken over", condition="TRANSACTION_LOST")
        return self._coordinator.init(SINK)

    def was_aborted(self, transaction: OpenTransaction) -> bool:
        self._world.between()
        return self._coordinator.entries[SINK].timed_out == number_of(transaction.identity)

    def read(self) -> CommitMarker | None:
        self._world.between()
        found = self._coordinator.markers
        return CommitMarker.from_bytes(found[-1].to_bytes(), "here") if found else None

    def write(self, transaction: OpenTransaction, marker: CommitMarker) -> OpenTransaction:
        self._world.between()
        self._coordinator.write(transaction, marker)
        self._world.between()
        until_ms = None if marker.decision is None else marker.decision.until_ms
        if until_ms is not None and self._coordinator.now > until_ms:
            raise TransactionInDoubtError("too late", condition="TRANSACTION_IN_DOUBT")
        if not self._coordinator.end(transaction, commit=True):
            raise TransactionLostError("ended", condition="TRANSACTION_LOST")
        following = self._coordinator.following(SINK)
        if self._world.happens("lost_responses"):
            raise TransactionInDoubtError("lost", condition="TRANSACTION_IN_DOUBT")
        self._world.between()
        return following

    def verify(self, transaction: OpenTransaction) -> OpenTransaction:
        self._world.between()
        self._coordinator.write(transaction, CommitMarker(SINK, "", -1, ""))
        return self.renew(transaction)

    def commit_tasks(self, tasks: Sequence[TaskTransaction]) -> list[bool | None]:
        done: list[bool | None] = []
        for task in tasks:
            self._world.between()
            done.append(self._coordinator.end(task.transaction, commit=True))
            if self._world.happens("lost_responses"):
                done[-1] = self._coordinator.end(task.transaction, commit=True)
        return done

    def open_tasks(self, prefix: str) -> dict[str, tuple[int, int]]:
        self._world.between()
        found = {
            name: (identity.producer_id, identity.producer_epoch)
            for name, entry in self._coordinator.entries.items()
            if name.startswith(prefix) and entry.open_at is not None
            for identity in [identity_of(entry.epoch, self._coordinator.generation)]
        }
        # The response may be late.
        self._world.between()
        return found

    def abort_tasks(self, names: Sequence[str]) -> None:
        for name in names:
            self._world.between()
            self._coordinator.init(name)

    def now_ms(self) -> int:
        return self._world.coordinator.now


class Simulation:
    """Drivers that run micro-batches, one after another and at once.

    Args:
        seed: of everything.
        generation: of the brokers' transactions.
        slow: whether time may pass for longer than a timeout between two requests of a driver, so that parts are lost.
        commits: makes what is under test.
    """

    def __init__(
        self,
        seed: int,
        generation: Generation,
        *,
        slow: bool = False,
        commits: Callable[[TaskCommitCalls], TaskCommits] = lambda calls: TaskCommits(calls, SINK, TIMEOUT_MS),
    ) -> None:
        self.rng = random.Random(seed)
        self.coordinator = Coordinator(generation)
        self._commits, self._slow = commits, slow
        self._is_quiet = False
        self._depth = self._names = self._attempts = 0
        # Ids that tasks have given back, by pool: (name, epoch of the planning).
        self._free: dict[str, list[tuple[str, int]]] = {}
        # Attempts that go on after their batch.
        self._late: list[tuple[Planning, int]] = []
        # The micro-batch that Spark's checkpoint has as the next one, and those that were reported as incomplete.
        self.batch = 0
        self.incomplete: list[int] = []

    def happens(self, what: str) -> bool:
        """Whether something happens that seldom does."""
        rates = {"lost_responses": 0.05, "death": 0.02, "other": 0.05, "late": 0.05, "time": 0.05, "attempt": 0.2}
        return not self._is_quiet and self.rng.random() < rates[what]

    def between(self) -> None:
        """Let others do something between two requests of a driver, or kill it."""
        if self.happens("time"):
            self.coordinator.now += self.rng.choice([50, 300, 2 * TIMEOUT_MS] if self._slow else [0])
            self.coordinator.time_out()
        if self._late and self.happens("late"):
            planning, batch = self.rng.choice(self._late)
            with suppress(ConnectorError):
                self.attempt(planning, batch, self.rng.randrange(TASKS))
        if self._depth < 2 and self.happens("other"):
            for _ in range(self.rng.randint(1, 2)):
                self.drive()
        if self.happens("death"):
            raise DeathError

    def drive(self) -> None:
        """Run the next micro-batch as a driver does that knows of no other."""
        self._depth += 1
        batch = self.batch
        calls = SimulatedCalls(self)
        ours = CommitMarker(SINK, "query", batch, f"print {batch}")
        planning = None
        try:
            planning = self._commits(calls).plan(ours)
            tasks = []
            for number in range(TASKS):
                task = self.attempt(planning, batch, number)
                if self.happens("attempt"):
                    # A second attempt, of which either one is chosen.
                    task = self.rng.choice([task, self.attempt(planning, batch, number)])
                tasks.append(task)
            self._late.append((planning, batch))
            self._commits(calls).commit_batch(planning, replace(ours, records=len(tasks)), tasks)
            self.batch = max(self.batch, batch + 1)
        except DeathError:
            pass
        except ConnectorError as error:
            if error.condition == "SINK_COMMIT_INCOMPLETE":
                self.incomplete.append(batch)
            if planning is not None and error.condition != "SINK_COMMIT_INCOMPLETE":
                with suppress(DeathError):
                    self._commits(calls).abort(planning)
        finally:
            self._depth -= 1

    def attempt(self, planning: Planning, batch: int, number: int) -> TaskTransaction:
        """Run one attempt of a task; what it has written is open."""
        epoch = number_of(planning.transaction.identity)
        free = self._free.setdefault(planning.pool, [])
        usable = [each for each in free if each[1] < epoch]
        if usable:
            free.remove(usable[0])
            name = usable[0][0]
        else:
            self._names += 1
            name = f"{task_prefix(SINK, planning.pool)}{self._names:032x}"
        transaction = self.coordinator.init(name)
        self._attempts += 1
        self.coordinator.write(transaction, (batch, number, self._attempts))
        if self.rng.random() < 0.9:
            free.append((name, epoch))
        return TaskTransaction(transaction, records=1, timeout_ms=TIMEOUT_MS)

    def run(self, batches: int) -> None:
        """Run until that many micro-batches are committed; check what readers see."""
        for _ in range(batches * 30):
            if self.batch >= batches:
                break
            self.resolve()
            self.drive()
        # The last word: a driver that is not disturbed completes what is decided; if a part of that is lost, twice.
        self._is_quiet = True
        before = self.batch
        for _ in range(2):
            self.resolve()
            self.drive()
        if self.batch == before:
            raise BrokenInvariantError(f"batch {before} is not committed though nothing disturbs its driver")
        self.check()

    def resolve(self) -> None:
        """Note that a loss is dealt with, as an operator does who sees an error; drivers may be at work meanwhile."""
        with suppress(DeathError, ConnectorError):
            calls = SimulatedCalls(self)
            found = calls.read()
            if found is not None and found.decision is not None and found.decision.lost:
                self._commits(calls).resolve(found)

    def check(self) -> None:
        """Compare what readers see with what was decided."""
        seen = Counter((batch, number) for batch, number, _ in self.coordinator.committed)
        twice = [part for part, count in seen.items() if count > 1]
        if twice:
            raise BrokenInvariantError(f"twice: {twice}")
        decided = {marker.batch_id for marker in self.coordinator.markers}
        if undecided := {batch for batch, _ in seen} - decided:
            raise BrokenInvariantError(f"visible and not decided: {undecided}")
        if self.coordinator.too_late:
            raise BrokenInvariantError(f"decided too late: {self.coordinator.too_late}")
        lost: dict[int, set[str]] = {}
        for marker in self.coordinator.markers:
            for task in marker.decision.lost if marker.decision else ():
                lost.setdefault(marker.batch_id, set()).add(task.transaction.name)
                if (task.transaction.name, number_of(task.transaction.identity)) not in self.coordinator.timed_out:
                    raise BrokenInvariantError(f"lost, but not by its timeout: {task.transaction.name}")
        for batch in decided:
            missing = [number for number in range(TASKS) if not seen[batch, number]]
            if len(missing) > len(lost.get(batch, ())):
                raise BrokenInvariantError(f"lost and not reported: {missing} of {batch}")
        if not self._slow and (lost or self.incomplete):
            raise BrokenInvariantError(f"lost: {lost} {self.incomplete}")
        if not lost and self.batch < max(decided, default=0):
            raise BrokenInvariantError("Spark is behind")
