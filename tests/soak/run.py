"""Runs all kinds of queries side by side, and records what they take: `python -m soak.run --minutes 120`.

Exits with 1 where a figure grows after the first ten minutes, or a query ended.
"""
# ruff: noqa: T201 - a program

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from kafka import KafkaProducer

from archive_classes import start_drivers_quickly
from kit.programs.run import kill_program, start_program
from pyspark_kafka.testing import EmbeddedKafka
from results import Run
from soak.growth import SETTLED_AFTER_S, Sample, chart, grown, settled, summary

TOPIC, PARTITIONS = "soaked", 4
_OUTPUTS = ("micro-batch", "micro-batch-once", "counts", "continuous", "continuous-once", "batch")
_SAMPLE_S = 10.0
_STARTED_WITHIN_S = 600.0
_FINISHED_WITHIN_S = 300.0
# Old records are deleted, so that the broker stays flat as well and reads of the whole topic stay small.
_LIMITED = {"retention.bytes": "1000000", "segment.bytes": "1048576"}
_BROKER = {"log.retention.check.interval.ms": "10000"}
# By how much a figure may grow whatever it was: pools that are refilled, sockets that are closing, files of a batch.
_SLACK = {
    "driver MiB": 15.0,
    "planning MiB": 20.0,
    "workers MiB": 30.0,
    "JVM MiB": 60.0,
    "descriptors": 15.0,
    "sockets": 10.0,
    "threads": 10.0,
    "processes": 4.0,
    "temporary files": 20.0,
    "checkpoint files": 100.0,
}
_MEMORY = tuple(name for name in _SLACK if name.endswith("MiB"))
_COUNTS = tuple(name for name in _SLACK if not name.endswith("MiB"))


def kind_of(process: psutil.Process, program: int) -> str:
    """Return which of the kinds of processes of a driver it is."""
    if process.pid == program:
        return "driver"
    command = " ".join(process.cmdline())
    if "java" in process.name():
        return "JVM"
    return "planning" if "streaming_source_runner" in command else "workers"


def take(program: int, place: Path) -> dict[str, float]:
    """Return the figures of a driver, of its JVM, and of the Python processes that Spark has started."""
    figures: Counter[str] = Counter(dict.fromkeys(_SLACK, 0))
    root = psutil.Process(program)
    for process in [root, *root.children(recursive=True)]:
        # Those of a task that has just ended are gone.
        with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            memory = process.memory_full_info().pss / (1 << 20)
            descriptors, threads = process.num_fds(), process.num_threads()
            sockets = len(process.net_connections(kind="all"))
            figures[f"{kind_of(process, program)} MiB"] += memory
            figures.update(processes=1, descriptors=descriptors, threads=threads, sockets=sockets)
    for path in place.rglob("*"):
        temporary = path.parts[len(place.parts)] in {"local", "temporary"}
        figures["temporary files" if temporary else "checkpoint files"] += 1
    return dict(figures)


class Writer:
    """A thread that writes records at a steady rate until the block ends."""

    def __init__(self, servers: str, rate: float) -> None:
        self._producer: Any = KafkaProducer(bootstrap_servers=servers, linger_ms=20)
        self._rate = rate
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.written = 0

    def __enter__(self) -> Writer:  # noqa: PYI034 - typing.Self needs Python 3.11
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._producer.close()

    def _run(self) -> None:
        begin = time.monotonic()
        while not self._ended.wait(0.1):
            while self.written < (time.monotonic() - begin) * self._rate:
                value = json.dumps({"n": self.written}).encode()
                key = b"k%d" % (self.written % 50)
                self._producer.send(TOPIC, key=key, value=value, partition=self.written % PARTITIONS)
                self.written += 1


def events(place: Path) -> Iterator[dict[str, Any]]:
    """Yield what the program has reported so far."""
    with suppress(FileNotFoundError):
        for line in (place / "events.jsonl").read_text().splitlines():
            yield json.loads(line)


def await_event(place: Path, name: str, program: subprocess.Popen[bytes], within_s: float) -> None:
    """Wait until the program has reported an event."""
    end = time.monotonic() + within_s
    while all(event["event"] != name for event in events(place)):
        if program.poll() is not None or time.monotonic() > end:
            raise AssertionError(f"the program did not report {name!r}\n{(place / 'log').read_text()[-6000:]}")
        time.sleep(0.5)


def soak(place: Path, minutes: float, rate: float) -> tuple[list[Sample], list[dict[str, Any]], int]:
    """Run; return the samples, the events of the program, and how many records were written."""
    samples: list[Sample] = []
    (place / "temporary").mkdir()
    with EmbeddedKafka(properties=_BROKER) as kafka:
        for name in (TOPIC, *(f"out-{name}" for name in _OUTPUTS)):
            kafka.create_topic(name, partitions=PARTITIONS, config=_LIMITED)
        spec = {"servers": kafka.bootstrap_servers, "topic": TOPIC, "place": str(place)}
        (place / "spec.json").write_text(json.dumps(spec))
        program = start_program(
            "-m", "soak.program", str(place / "spec.json"),
            log=place / "log", environment={"TMPDIR": str(place / "temporary")},
        )  # fmt: skip
        try:
            with Writer(kafka.bootstrap_servers, rate) as writer:
                await_event(place, "running", program, _STARTED_WITHIN_S)
                begin = time.monotonic()
                while (at := time.monotonic() - begin) < minutes * 60:
                    samples.append((at, take(program.pid, place)))
                    print(f"{at / 60:6.1f} min " + ", ".join(f"{name} {n:.0f}" for name, n in samples[-1][1].items()))
                    time.sleep(max(0.0, _SAMPLE_S - (time.monotonic() - begin - at)))
            # Nothing is written now: a query that is to process what is there would never be done.
            (place / "finish").touch()
            await_event(place, "finished", program, _FINISHED_WITHIN_S)
        finally:
            kill_program(program)
    return samples, list(events(place)), writer.written


def main() -> int:
    """Run, print the tables, and say whether anything grew."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--rate", type=float, default=200, help="records a second")
    given = parser.parse_args()
    start_drivers_quickly()
    record = Run("soak")
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    place = Path(tempfile.mkdtemp(prefix="soak-"))
    samples, happened, written = soak(place, given.minutes, given.rate)
    # Short runs are for those who change this program: what grows in a minute is not known.
    after_s = min(SETTLED_AFTER_S, given.minutes * 60 / 2)
    rest = settled(samples, after_s)
    ended = [f"{event['query']} ended: {event['error']}" for event in happened if event["event"] == "ended"]
    bad = [*ended, *grown(rest, _SLACK)]
    jobs = sum(event["event"] == "job" for event in happened)
    did = f"{written} records written, {jobs} batch jobs, {len(ended)} queries ended"
    text = "\n\n".join(
        (
            f"{given.minutes:g} minutes, {did}. From minute {after_s / 60:g} on:",
            summary(rest, tuple(_SLACK)),
            chart(samples, _MEMORY, "Memory (PSS)", "MiB"),
            chart(samples, _COUNTS, "Counts", "number"),
            "\n".join(f"- grew: {line}" for line in bad) or "Nothing grew, and no query ended.",
        )
    )
    print(text)
    counts = {"minutes": given.minutes, "records written": written, "batch jobs": jobs, "queries ended": len(ended)}
    record.end(passed=not bad, counts={**counts, "figures that grew": len(bad) - len(ended)}, text=text)
    if bad:
        print(f"The files are in {place}")
        return 1
    shutil.rmtree(place)
    return 0


if __name__ == "__main__":
    sys.exit(main())
