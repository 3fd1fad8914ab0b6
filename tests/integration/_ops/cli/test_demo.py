"""The demo as a user runs it: it ends automatically or by Ctrl-C, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pytest

_PROGRAM = [sys.executable, "-m", "pyspark_kafka"]


def run_environment(place: Path) -> dict[str, str]:
    # Temporary files go to a folder of the test's own, so that what is left there is the demo's.
    return os.environ | {"TMPDIR": str(place), "COLUMNS": "60"}


def processes_with(text: str) -> list[str]:
    """Return the command lines of live processes that hold a text."""
    found = []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = command.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # ended meanwhile
        if text in line:
            found.append(line)
    return found


def await_no_process_with(text: str, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while left := processes_with(text):
        if time.monotonic() > end:
            raise AssertionError(f"still running: {left}")
        time.sleep(0.1)


def await_no_file_in(place: Path, seconds: float = 120) -> None:
    # Spark's own shutdown hook removes the last of its files just after the program has ended.
    end = time.monotonic() + seconds
    while left := [p for p in place.rglob("*") if p.is_file() and "hsperfdata" not in str(p)]:
        if time.monotonic() > end:
            raise AssertionError(f"files were left: {left[:10]}")
        time.sleep(0.1)


# Readers of a log were promised that the demo is never silent for longer.
_MAX_SILENCE_S = 5.0


@dataclass(frozen=True)
class TimedLine:
    """A line of a program, the seconds of silence before it, and by how much this machine was late meanwhile.

    The machine is late for the program, or for the test that reads its lines.
    """

    text: str
    silence_s: float
    late_s: float


class Lateness:
    """Measures how late a busy machine runs a thread that sleeps: what a silence may last longer for that reason."""

    def __init__(self) -> None:
        self._worst = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._measure, daemon=True)

    def __enter__(self) -> Lateness:  # noqa: PYI034 - typing.Self needs Python 3.11
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def take(self) -> float:
        """Return the worst since the last call."""
        worst, self._worst = self._worst, 0.0
        return worst

    def _measure(self) -> None:
        last = time.monotonic()
        while not self._over.wait(0.1):
            now = time.monotonic()
            self._worst = max(self._worst, now - last - 0.1)
            last = now


def waited_s(program: int) -> float:
    """Return how long the threads of a program were ready to run and had no processor."""
    waited = 0.0
    for file in Path(f"/proc/{program}/task").glob("*/schedstat"):
        with suppress(OSError):
            waited += int(file.read_text().split()[1]) / 1e9
    return waited


def run_timed(command: list[str], environment: dict[str, str], timeout_s: float) -> tuple[int, list[TimedLine]]:
    """Run a program and return its exit code and its lines, the last one empty: the silence before its end."""
    lines = []
    with (
        Lateness() as lateness,
        subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as program,
    ):
        assert program.stdout is not None
        killer = threading.Timer(timeout_s, program.kill)
        killer.start()
        last, waited_before = time.monotonic(), 0.0
        for line in chain(program.stdout, [""]):
            now, waited = time.monotonic(), waited_s(program.pid)
            lines.append(TimedLine(line, now - last, max(lateness.take(), waited - waited_before)))
            last, waited_before = now, waited
        killer.cancel()
        return program.wait(), lines


@pytest.mark.broker
def test_demo_ends_and_is_never_silent_and_leaves_nothing(tmp_path: Path) -> None:
    code, lines = run_timed(
        [*_PROGRAM, "demo", "--records", "20000", "--codec", "zstd"], run_environment(tmp_path), timeout_s=500
    )
    output = "".join(line.text for line in lines)
    assert code == 0, output[-8000:]
    assert [line for line in lines if line.silence_s - line.late_s > _MAX_SILENCE_S] == []
    assert "Produced 20,000 orders to 'orders' (4 partitions, zstd)" in output
    assert "Streamed 20,000 orders" in output
    assert "every country's sum equals what was produced, 19,999 orders in all. One more, dated a day" in output
    assert re.search(r"^Read 'revenue_by_country' back in batch: 48 records in \d+\.\d s\.$", output, re.MULTILINE)
    # Without a terminal there is no spinner, so each step says that it begins.
    for begun in ("Starting Apache Kafka", "Starting Spark", "Spark reads 'orders' as a stream", "Reading 'revenue"):
        assert re.search(rf"^{begun}.* …$", output, re.MULTILINE)
    # Nothing of Spark's own log, and no line cut for the width of a terminal.
    assert "WARN" not in output
    assert re.search(r"^Produced 20,000 orders .* records/s\.$", output, re.MULTILINE)
    assert re.search(r"│ DE\s+│\s+6 │", output)
    assert "First records of topic 'orders'" in output
    await_no_process_with(str(tmp_path))
    await_no_file_in(tmp_path)


@contextmanager
def demo_until(moment: str, place: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Run the demo in a process group of its own, up to a line with the text `moment`; at the end nothing is left."""
    demo = subprocess.Popen(
        [*_PROGRAM, "demo", "--records", "1000", *options],
        env=run_environment(place),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert demo.stdout is not None
    try:
        lines = []
        for line in demo.stdout:
            lines.append(line)
            if moment in line:
                break
        assert moment in lines[-1], "".join(lines)
        yield demo
    finally:
        demo.kill()
        demo.wait()
        demo.stdout.close()
    await_no_process_with(str(place))
    await_no_file_in(place)


def assert_interrupted(demo: subprocess.Popen[str]) -> None:
    assert demo.stdout is not None
    rest = demo.stdout.read()
    assert demo.wait(timeout=300) == 130, rest
    assert "Interrupted. The broker is stopped" in rest
    assert "Traceback" not in rest
    assert "Exception" not in rest
    assert "Error" not in rest


@pytest.mark.full("Start and end of the demo")
@pytest.mark.broker
def test_a_signal_ends_the_demo_and_leaves_nothing(tmp_path: Path) -> None:
    with demo_until("is up at", tmp_path, "--keep-running") as demo:
        assert processes_with(str(tmp_path))
        os.kill(demo.pid, signal.SIGINT)
        assert_interrupted(demo)


# A terminal sends Ctrl-C to the program and to all that it has started. Spark's JVM ignores that, but ends by SIGTERM.
@pytest.mark.full("Start and end of the demo")
@pytest.mark.broker
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_the_signal_that_a_demo_left_running_waits_for_is_a_success(tmp_path: Path, number: signal.Signals) -> None:
    with demo_until("Paste there:", tmp_path, "--keep-running") as demo:
        assert demo.stdout is not None
        demo.stdout.readline()
        pasted = [demo.stdout.readline() for _ in range(5)]
        # Whatever the width of the terminal is: Python must take the lines as they are copied.
        compile("".join(pasted), "pasted", "exec")
        assert pasted[-1].endswith(".show(truncate=False)\n")
        os.killpg(demo.pid, number)
        rest = demo.stdout.read()
        assert demo.wait(timeout=300) == 0, rest
        ending, *slow = rest.strip().splitlines()
        assert ending == "Stopping. The broker and its files will be gone."
        assert all(re.fullmatch(r"Stopping .* …( \d+ s)?", line) for line in slow)


def jvm_is_launched(place: Path) -> bool:
    return any("org.apache.spark.deploy.SparkSubmit" in line for line in processes_with(str(place)))


def context_is_being_made(place: Path) -> bool:
    return any(place.glob("pyspark-kafka-demo-*/blockmgr-*"))


@pytest.mark.full("Start and end of the demo")
@pytest.mark.broker
@pytest.mark.parametrize(
    ("begun", "send", "number"),
    [
        pytest.param(jvm_is_launched, os.kill, signal.SIGINT, marks=pytest.mark.long),
        (context_is_being_made, os.killpg, signal.SIGINT),
        pytest.param(jvm_is_launched, os.killpg, signal.SIGTERM, marks=pytest.mark.long),
    ],
)
def test_a_signal_while_spark_starts_ends_the_demo_and_leaves_nothing(
    tmp_path: Path, begun: Callable[[Path], bool], send: Callable[[int, int], None], number: signal.Signals
) -> None:
    with demo_until("Produced", tmp_path) as demo:
        while not begun(tmp_path):
            assert demo.poll() is None
            time.sleep(0.01)
        send(demo.pid, number)
        assert_interrupted(demo)


@pytest.mark.parametrize("asked", ["version", "--version"])
def test_the_version_says_which_codec_is_active(asked: str) -> None:
    done = subprocess.run([*_PROGRAM, asked], capture_output=True, text=True, timeout=300, check=True)
    assert re.match(r"pyspark-kafka \d+\.\d+\.\d+, record codec (not )?compiled", done.stdout)
