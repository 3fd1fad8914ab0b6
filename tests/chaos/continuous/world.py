"""A continuous query under kills: its program, which is started again and again on one checkpoint, and what it left."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from chaos.continuous.checker import (
    KillsFindings,
    RunCopy,
    WindowRow,
    check_counts,
    check_runs,
    check_windows,
    epochs_of,
)
from chaos.continuous.striking import COUNTING, IN_WINDOWS, KEYS, started_at
from faults.harness import executor_of
from kit.checkpoint_files import batches_of, end_of_batch
from kit.independent_client import read_to_end
from kit.log_checker import Extent, Log
from kit.programs.run import kill_program, start_program

# Spark starts in 6 to 8 s on a quiet machine, and in minutes on a busy one; the query waits for a broker that is gone.
STEP_S = 300.0
# Less than the time of a test, so that it fails with the reason.
_FINISH_S = 120.0
_POLL_S = 0.01
# More than a query has in a row.
_FAILURES_SHOWN = 8
_ENDED = re.compile(r"Continuous query \S+ ended: ")


@dataclass(frozen=True)
class ProgramSpec:
    """The specification that the program reads.

    Attributes:
        place: the folder of the points and events.
        checkpoint: of the query.
        server: of Spark Connect; empty to start Spark in the program.
        interval: the length of an epoch.
        source: options.
        sink: options.
        shift: a bug to plant; see `striking.plant`.
        keeps: what the query keeps by key: `striking.COUNTING`, `striking.IN_WINDOWS` or nothing.
    """

    place: str
    checkpoint: str
    server: str
    interval: str
    source: Mapping[str, str]
    sink: Mapping[str, str]
    shift: int = 0
    keeps: str = ""


@dataclass
class Killed:
    """A kill.

    Attributes:
        who: was killed.
        where: the point.
        seconds: from the kill until two more epochs were committed.
    """

    who: str
    where: str
    seconds: float = 0.0


@dataclass
class KillWorld:
    """One query that is killed; everything ends with the block.

    Args:
        place: an empty folder.
        servers: of Kafka.
        connect: the server of Spark Connect, whose Python workers are those of the query.
        pattern: of the topics that are read.
        target: the topic that is written.
        exactly_once: the guarantee.
        seed: of what is random.
        interval: the length of an epoch.
        shift: a bug to plant; see `striking.plant`.
        keeps: what the query keeps by key: `striking.COUNTING`, `striking.IN_WINDOWS` or nothing.
        killed: what was killed.
        has_own_spark: whether the program that runs has a Spark of its own.
    """

    place: Path
    servers: str
    connect: str
    pattern: str
    target: str
    exactly_once: bool
    seed: int
    interval: str = "200 milliseconds"
    shift: int = 0
    keeps: str = ""
    killed: list[Killed] = field(default_factory=list)
    has_own_spark: bool = False
    rng: random.Random = field(init=False)
    _program: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        (self.place / "workers").mkdir(parents=True)

    def __enter__(self) -> KillWorld:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_program()

    @property
    def checkpoint(self) -> Path:
        """The checkpoint of the query."""
        return self.place / "checkpoint"

    @property
    def log(self) -> str:
        """The end of what the programs have printed."""
        return (self.place / "log").read_text(errors="replace")[-6000:]

    def start(self, *, own_spark: bool = False) -> None:
        """Start the program; with Spark of its own, or as a client of the server."""
        self._end_program()
        self.has_own_spark = own_spark
        spec = ProgramSpec(
            place=str(self.place),
            checkpoint=str(self.checkpoint),
            server="" if own_spark else self.connect,
            interval=self.interval,
            shift=self.shift,
            keeps=self.keeps,
            source={
                "kafka.bootstrap.servers": self.servers,
                "subscribePattern": self.pattern,
                "startingOffsets": "earliest",
                "failOnDataLoss": "false",
                "kafka.metadata.max.age.ms": "2000",
            },
            sink={
                "kafka.bootstrap.servers": self.servers,
                "topic": self.target,
                **({"deliveryGuarantee": "exactly_once"} if self.exactly_once else {}),
            },
        )
        path = self.place / "spec.json"
        path.write_text(json.dumps(asdict(spec)))
        self._program = start_program("-m", "chaos.continuous.program", str(path), log=self.place / "log")

    def arm(self, point: str, following: str = "") -> None:
        """Have the process that comes to a point next die there, and then another one at the following point.

        The following point is armed by the death: a recovery may be faster than this process, and a query that still
        starts may come to the following point first.
        """
        unseen = self.place / f"arming.{point}"
        unseen.write_text(following)
        unseen.rename(self.place / f"armed.{point}")

    def await_struck(self, point: str) -> float:
        """Wait until a process has died at a point; return when."""
        struck = self.place / f"struck.{point}"
        self.until(struck.exists, f"nobody came to {point}")
        moment = struck.stat().st_mtime
        struck.unlink()
        return moment

    def strike_worker(self, number: signal.Signals, *, executor: bool = False) -> int:
        """Send a signal to a Python worker, or to the executor that it belongs to, now; return the worker's id."""
        workers = list((self.place / "workers").iterdir())
        self.rng.shuffle(workers)
        for each in workers:
            pid, started = int(each.name), each.read_text()
            each.unlink()
            # It may be dead already.
            with suppress(OSError):
                if started_at(pid) == started:
                    os.kill(executor_of(pid) if executor else pid, number)
                    return pid
        raise AssertionError("no worker is there to kill")

    def await_program_end(self) -> None:
        """Wait until the program is dead, with what it had started."""
        assert self._program is not None
        self._program.wait(STEP_S)
        self._end_program()

    def last_commit(self) -> int:
        """Return the last epoch of the commit log; -1 if there is none."""
        return max(batches_of(self.checkpoint, "commits"), default=-1)

    def await_flow(self, since: float) -> float:
        """Wait until two more epochs are committed; return the seconds since a moment.

        And until every partition has advanced: an epoch can end before a lane has read, and the next kill of the lane
        would be the next failure in a row.
        """
        first = self.last_commit()
        before = self._ends(first)
        self.until(lambda: self.last_commit() >= first + 2, "no epoch was committed")
        seconds = (self.checkpoint / "commits" / str(first + 2)).stat().st_mtime - since

        def have_advanced() -> bool:
            now = self._ends(self.last_commit())
            return all(log not in now or now[log] > end for log, end in before.items())

        self.until(have_advanced, "a partition has not advanced")
        return seconds

    def _ends(self, epoch: int) -> dict[Log, int]:
        if epoch < 0:
            return {}
        ends = end_of_batch(self.checkpoint, epoch)
        return {Log(topic, number): end for topic, partitions in ends.items() for number, end in partitions.items()}

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for a condition."""
        end = time.monotonic() + STEP_S
        before = len(self.ended())
        while not holds():
            if time.monotonic() > end or len(self.ended()) > before + 1:
                lives = self._program is not None and self._program.poll() is None
                raise AssertionError(
                    f"{what} within {STEP_S:g} s, or queries end; the program {'lives' if lives else 'is dead'}\n"
                    f"{self.ended()}\n{self.log}"
                )
            time.sleep(_POLL_S)

    def finish(self) -> None:
        """Let the query copy what is there, and stop."""
        (self.place / "finish").touch()
        assert self._program is not None
        try:
            code = self._program.wait(_FINISH_S)
        except subprocess.TimeoutExpired:
            # Its threads print where they are; see `program.main`.
            self._program.send_signal(signal.SIGABRT)
            self._program.wait()
            raise AssertionError(f"the query did not finish within {_FINISH_S:g} s\n{self.log}") from None
        if code:
            raise AssertionError(f"the query did not finish\n{self.log}")
        assert (self.place / "finished").exists()

    def ended(self) -> list[str]:
        """Return the errors of queries that have ended, by the word of their program."""
        path = self.place / "events.jsonl"
        events = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [event["error"] for event in events if event["event"] == "ended"]

    def failures(self) -> list[str]:
        """Return the lines of the programs on the failed runs before each end of the query: the reason of the end."""
        told, shown = [], []
        for line in (self.place / "log").read_text(errors="replace").splitlines():
            if "Continuous query" in line:
                told.append(line)
                if _ENDED.match(line):
                    shown += told[-_FAILURES_SHOWN:]
        return shown

    def findings(self, topics: list[str], deleted: frozenset[str]) -> KillsFindings:
        """Read source and output with another client, and compare."""
        servers = self.servers.split(",")
        source: dict[Log, dict[int, str]] = {}
        for topic in topics:
            for record in read_to_end(servers, topic):
                source.setdefault(Log(topic, record.partition), {})[record.offset] = record.value.decode()
        extents = {log: Extent(min(values), max(values) + 1, values) for log, values in source.items()}
        records, epochs = read_to_end(servers, self.target), epochs_of(self.checkpoint)
        if self.keeps == IN_WINDOWS:
            return check_windows(extents, [WindowRow.from_value(each.value) for each in records], epochs, deleted)
        output = [_copied(record, self.exactly_once) for record in records]
        found = check_runs(extents, output, epochs, deleted)
        if self.keeps == COUNTING:
            check_counts(found, extents, output, KEYS)
        return found

    def _end_program(self) -> None:
        """Kill what is left of the program."""
        if self._program is not None:
            kill_program(self._program)
        self._program = None


def _copied(record: Any, keeps_order: bool) -> RunCopy | bytes:
    try:
        run, planned, attempt, topic, partition, offset, value, *count = json.loads(record.value)
    except ValueError:
        return bytes(record.value)
    return RunCopy(
        Log(topic, partition),
        offset,
        record.partition,
        value,
        run=run,
        planned=planned,
        attempt=attempt,
        keeps_order=keeps_order,
        count=count[0] if count else None,
    )
