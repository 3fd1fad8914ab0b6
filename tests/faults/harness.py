"""Runs driver programs on one checkpoint, kills them, and has the outcome checked. Linux: looks into /proc."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType

from faults.checker import BatchFindings, Planned, check_batches
from faults.stamped import from_value, generate
from faults.topics import Pairs, read_markers, read_values, send
from kit.checkpoint_files import batches_of, end_of_batch
from kit.log_checker import Extent, Log
from kit.processes import processes_with
from kit.programs.run import kill_program, start_program
from pyspark_kafka.testing import EmbeddedKafka

PROGRAM = Path(__file__).with_name("driver.py")
SOURCE_PARTITIONS = 3
RECORDS_PER_BATCH = 30
# As masters: executors that are processes of their own, on one host or on two (`cluster.py`).
TWO_EXECUTORS, TWO_HOSTS = "local-cluster[2,1,1024]", "two-hosts"
# A driver starts in 6 to 8 s on a quiet machine, and in more than a minute beside much other work.
_STEP_S = 300.0
_POLL_S = 0.02
_KEPT_MS = str(24 * 3_600_000)
# In the environment of every process that a driver starts; names the folder of its run.
_TAG = "PYSPARK_KAFKA_FAULT_RUN"


@dataclass(frozen=True)
class Stop:
    """Where a driver stops.

    Attributes:
        batch: in which micro-batch.
        point: one of `points.py`.
        action: `stand` stands still; `outlive` does too, and does not die with its driver; `doubt` fails as if no
            answer had come.
        after: the name of another stop that must have been reached before.
        query: which one, if a driver runs several; they have folders of their own.
    """

    batch: int
    point: str
    action: str = "stand"
    after: str = ""
    query: str = ""

    @property
    def name(self) -> str:
        """The file that says that it was reached."""
        return f"{self.query}{self.query and '/'}{self.batch}.{self.point}"


@dataclass(frozen=True)
class DriverSpec:
    """The specification that a driver program reads."""

    place: str
    checkpoint: str
    source_options: Mapping[str, str]
    sink_options: Mapping[str, str]
    stops: list[Stop] = field(default_factory=list)
    available_now: bool = False
    master: str = "local[2]"
    plant: str = ""
    restarts: int = 0
    conf: Mapping[str, str] = field(default_factory=dict)


class Driver:
    """A driver program that runs; killed with all it has started when the block ends."""

    def __init__(self, spec: DriverSpec, program: Path = PROGRAM) -> None:
        self.spec = spec
        self.place = Path(spec.place)
        self.place.mkdir(parents=True)
        (self.place / "spec.json").write_text(json.dumps(asdict(spec)))
        arguments = str(program), str(self.place / "spec.json")
        self._process = start_program(*arguments, log=self.place / "log", environment={_TAG: spec.place})

    def __enter__(self) -> Driver:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self.kill_left()

    @property
    def log(self) -> str:
        """What it has printed."""
        return (self.place / "log").read_text(errors="replace")

    def seconds_to(self, batch: int) -> float:
        """How long after its session was there Spark had noted a micro-batch as committed."""
        return self._committed_at(batch) - (self.place / "ready").stat().st_mtime

    def seconds_from(self, stop: Stop) -> float:
        """How long after a stop was reached Spark had noted its micro-batch as committed."""
        return self._committed_at(stop.batch) - (self.place / stop.name).stat().st_mtime

    def _committed_at(self, batch: int) -> float:
        return Path(self.spec.checkpoint, "commits", str(batch)).stat().st_mtime

    def await_file(self, name: str, *, seconds: float = _STEP_S) -> str:
        """Wait until there is a file of the run, and return its text; the driver may have ended meanwhile."""
        path = self.place / name
        self._until(path.exists, name, seconds, lives=False)
        return path.read_text()

    def await_stop(self, stop: Stop) -> int:
        """Wait until it has come to a stop, and return the id of the process that stands there."""
        path = self.place / stop.name
        self._until(path.exists, stop.name, _STEP_S, lives=True)
        return int(path.read_text())

    def await_batch(self, batch: int) -> None:
        """Wait until Spark has noted a micro-batch as committed."""
        path = Path(self.spec.checkpoint, "commits", str(batch))
        self._until(path.exists, f"commit of batch {batch}", _STEP_S, lives=True)

    def kill_at(self, stop: Stop) -> None:
        """Wait until a process has come to a stop, and kill it; its driver lives on."""
        _kill(self.await_stop(stop))

    def kill_executor_at(self, stop: Stop) -> int:
        """Wait until a task has come to a stop, kill the executor that runs it, and return its process id."""
        pid = executor_of(self.await_stop(stop))
        _kill(pid)
        return pid

    def go(self, stop: Stop) -> None:
        """Let who stands at a stop go on."""
        (self.place / f"{stop.name}.go").touch()

    def await_end(self, *, seconds: float = _STEP_S) -> int:
        """Wait until it has ended, and return its exit code."""
        return self._process.wait(seconds)

    def await_gone(self, pid: int | None = None) -> None:
        """Wait until a process, or everything that the driver has started, is there no more."""
        end = time.monotonic() + _STEP_S
        while left := self._left() & ({pid} if pid else self._left()):
            if time.monotonic() > end:
                raise AssertionError(f"processes {sorted(left)} of {self.place} still run")
            time.sleep(_POLL_S)

    def kill(self) -> None:
        """Kill the driver with its JVM, and who stands still; wait until what it has started is gone, too."""
        kill_program(self._process)
        spared = {self._pid(stop) for stop in self.spec.stops if stop.action == "outlive"}
        for pid in self._left() & {self._pid(stop) for stop in self.spec.stops} - spared:
            _kill(pid)
        end = time.monotonic() + 10
        # Spark's daemons end their workers when the JVM is gone.
        while (left := self._left() - spared) and time.monotonic() < end:
            time.sleep(_POLL_S)
        for pid in left:
            _kill(pid)

    def kill_left(self) -> None:
        """Kill who has outlived the driver."""
        end = time.monotonic() + 10
        while left := self._left():
            for pid in left:
                _kill(pid)
            if time.monotonic() > end:
                raise AssertionError(f"processes {sorted(left)} of {self.place} cannot be killed")
            time.sleep(_POLL_S)

    def _pid(self, stop: Stop) -> int | None:
        try:
            return int((self.place / stop.name).read_text())
        except FileNotFoundError:
            return None

    def _left(self) -> set[int]:
        """Return the processes that this run has started and that still are there."""
        return set(processes_with(_TAG, lambda place: place == str(self.place)))

    def _until(self, holds: Callable[[], bool], what: str, seconds: float, *, lives: bool) -> None:
        end = time.monotonic() + seconds
        while not holds():
            ended = lives and self._process.poll() is not None
            if (ended and not holds()) or time.monotonic() > end:
                state = "the driver has ended" if ended else f"not within {seconds:g} s"
                raise AssertionError(f"{what} did not come: {state}\n{self.log[-6000:]}")
            time.sleep(_POLL_S)


class World:
    """One source topic, one query's checkpoint, one sink topic; and the drivers that run on them, one after another."""

    def __init__(
        self,
        kafka: EmbeddedKafka,
        place: Path,
        run: str,
        seed: int,
        guarantee: str = "exactly_once",
        commit: str = "driver",
    ) -> None:
        self.servers = kafka.bootstrap_servers
        self.place = place
        self.run = run
        self.source, self.sink, self.markers = f"{run}-source", f"{run}-sink", f"{run}-markers"
        self.checkpoint = place / "checkpoint"
        self._seed = seed
        self._exactly_once = guarantee == "exactly_once"
        self._sent = dict.fromkeys(range(SOURCE_PARTITIONS), 0)
        self._drivers = 0
        kafka.create_topic(self.source, SOURCE_PARTITIONS)
        kafka.create_topic(self.sink, 2)
        if self._exactly_once:
            # The sink makes it, too; but of a run of more than an hour brokers would keep the newest marker only, and
            # all of them are compared.
            kafka.create_topic(self.markers, 16, {"cleanup.policy": "compact", "min.compaction.lag.ms": _KEPT_MS})
        self.source_options = {
            "kafka.bootstrap.servers": self.servers,
            "subscribe": self.source,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": str(RECORDS_PER_BATCH),
        }
        self.sink_options = {
            "kafka.bootstrap.servers": self.servers,
            "topic": self.sink,
            "deliveryGuarantee": guarantee,
            **({"commitTopic": self.markers, "exactlyOnceCommit": commit} if self._exactly_once else {}),
            # A batch of tasks that publish must fit in: its processes may be slow to start. Nothing waits for its end.
            **({"kafka.transaction.timeout.ms": "600000"} if commit == "tasks" else {}),
        }

    def produce(self, batches: int) -> dict[int, Pairs]:
        """Write the records of a number of micro-batches to the source, and return them."""
        more = batches * RECORDS_PER_BATCH // SOURCE_PARTITIONS
        ranges = {partition: range(start, start + more) for partition, start in self._sent.items()}
        made = generate(self.run, ranges, self._seed)
        send(self.servers, self.source, made)
        self._sent = {partition: start + more for partition, start in self._sent.items()}
        return made

    def driver(
        self,
        *stops: Stop,
        options: Mapping[str, str] | None = None,
        available_now: bool = False,
        master: str = "local[2]",
        plant: str = "",
        restarts: int = 0,
        conf: Mapping[str, str] | None = None,
    ) -> Driver:
        """Start a driver.

        Args:
            stops: where it stops.
            options: more options of the source.
            available_now: it ends when it has read what is there.
            master: Spark's; or `two-hosts`, see `cluster.py`.
            plant: a bug to plant; see `stopping.py`.
            restarts: how many times it starts its query again after a failure.
            conf: more settings of Spark.
        """
        self._drivers += 1
        spec = DriverSpec(
            place=str(self.place / f"run-{self._drivers}"),
            checkpoint=str(self.checkpoint),
            source_options={**self.source_options, **(options or {})},
            sink_options=self.sink_options,
            stops=list(stops),
            available_now=available_now,
            master=master,
            plant=plant,
            restarts=restarts,
            conf=dict(conf or {}),
        )
        return Driver(spec)

    def run_to_end(self, **options: str) -> Driver:
        """Run a driver until it has read everything there is."""
        with self.driver(options=options, available_now=True) as driver:
            if driver.await_end():
                raise AssertionError(f"the query failed\n{driver.log[-6000:]}")
        return driver

    @property
    def next_batch(self) -> int:
        """The micro-batch that is planned next."""
        return max(batches_of(self.checkpoint), default=-1) + 1

    def plans(self) -> dict[int, Planned]:
        """Read from the offset log what each micro-batch was to write."""
        start = dict.fromkeys(range(SOURCE_PARTITIONS), 0)
        found = {}
        for batch in batches_of(self.checkpoint):
            ends = end_of_batch(self.checkpoint, batch)[self.source]
            found[batch] = Planned({partition: (start[partition], end) for partition, end in ends.items()})
            start.update(ends)
        return found

    def outcome(self, seen_before: Mapping[int, list[bytes]] | None = None) -> Outcome:
        """Read everything back."""
        extents = {Log(self.run, partition): Extent(0, end) for partition, end in self._sent.items()}
        markers = read_markers(self.servers, self.markers) if self._exactly_once else None
        return Outcome(extents, read_values(self.servers, self.sink), self.plans(), markers, dict(seen_before or {}))


@dataclass(frozen=True)
class Outcome:
    """What was sent and what is there."""

    extents: dict[Log, Extent]
    visible: dict[int, list[bytes]]
    plans: dict[int, Planned]
    markers: list[tuple[int, int]] | None
    seen_before: dict[int, list[bytes]]

    def findings(self) -> BatchFindings:
        """Check all of it."""
        planned = None if self.markers is None else self.plans
        return check_batches(
            self.extents, self.visible, planned=planned, markers=self.markers or (), seen_before=self.seen_before
        )

    def findings_of(self, batch: int) -> BatchFindings:
        """Check what belongs to one micro-batch."""
        ranges = self.plans[batch].ranges
        extents = {log: Extent(*ranges[log.partition]) for log in self.extents if log.partition in ranges}

        def belongs(value: bytes) -> bool:
            copied = from_value(value)
            return copied is not None and copied.log in extents and copied.offset in extents[copied.log].offsets

        return check_batches(
            extents,
            {out: [value for value in values if belongs(value)] for out, values in self.visible.items()},
            planned=None if self.markers is None else {batch: self.plans[batch]},
            markers=[each for each in self.markers or () if each[0] == batch],
        )


def executor_of(pid: int) -> int:
    """Return the process id of the executor that a Python worker belongs to."""
    above = pid
    while above > 1:
        if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{above}/cmdline").read_bytes():
            return above
        # Behind the name of the program, which may have blanks and brackets: the state, and the parent.
        above = int(Path(f"/proc/{above}/stat").read_text().rpartition(")")[2].split()[1])
    raise AssertionError(f"process {pid} has no executor")


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
