"""A test that fails fails alone: what it left is not reported in the tests after it, and ends none of them.

A process that is left fails the run.
"""

from __future__ import annotations

import gc
import os
import re
import socket
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from kafka import KafkaConsumer
from kafka.errors import KafkaError
from kafka.net import KafkaNetSocket

from kit.fixtures.leftovers import collect_quietly, processes_of
from kit.pointers import REPO
from kit.waiting import eventually

_TESTS = """
import gc
import socket


class Cycle:
    def __init__(self, held):
        self.held, self.itself = held, self


def test_one():
    held = socket.socket()
    in_a_cycle = Cycle(socket.socket())
    raise AssertionError


def test_two():
    gc.collect()
"""

_HANDLERS = """
import os
import signal

from pyspark_kafka._connector.spark.processes import stop_signal


def test_one(monkeypatch):
    monkeypatch.setattr(stop_signal, "module_of_spark", lambda: "pyspark.daemon")
    stop_signal.stop_at_sigterm(lambda: None)


def test_two():
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def test_three():
    assert signal.set_wakeup_fd(-1) == -1
    _, told = os.pipe()
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told)


def test_four():
    assert signal.set_wakeup_fd(-1) == -1
    former = signal.signal(signal.SIGTERM, lambda *_: None)
    signal.raise_signal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, former)
"""

_PROCESS = """
import subprocess
import sys

from kit.fixtures import leftovers

leftovers.MAX_END_S = 0.5


def test_one():
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(50)"])


def test_two():
    subprocess.run([sys.executable, "-c", ""], check=True)
"""

_SPARK = """
def test_one(spark):
    assert spark.range(3).count() == 3
"""


def test_only_the_test_that_leaves_a_socket_fails(tmp_path: Path) -> None:
    assert _counts(_run(_TESTS, tmp_path)) == "1 failed, 1 passed"


def test_only_the_tests_that_leave_a_handler_of_sigterm_fail(tmp_path: Path) -> None:
    assert _counts(_run(_HANDLERS, tmp_path)) == "4 passed, 3 errors"


def test_run_that_leaves_a_process_fails_names_it_and_ends_it(tmp_path: Path) -> None:
    done = _run(_PROCESS, tmp_path)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout
    [number] = re.findall(r"the run has left process (\d+): .*time\.sleep\(50\)$", done.stdout, re.MULTILINE)
    eventually(lambda: int(number) not in processes_of(Path("/")))


@pytest.mark.full("Drivers of their own")
def test_spark_of_a_run_in_one_process_is_no_process_that_is_left(tmp_path: Path) -> None:
    done = _run(_SPARK, tmp_path, "kit.fixtures.spark")
    assert done.returncode == pytest.ExitCode.OK, done.stdout


def test_kafka_python_leaves_no_socket_of_a_broker_that_is_gone() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        host, port = free.getsockname()
    before = _open_sockets()
    with pytest.raises(KafkaError):
        KafkaConsumer(bootstrap_servers=f"{host}:{port}", bootstrap_timeout_ms=500)
    assert _open_sockets() <= before


def test_socket_that_kafka_python_forgets_is_closed_and_warns_nobody() -> None:
    # What other tests left is not what is warned of below.
    collect_quietly()
    with socket.create_server(("127.0.0.1", 0)) as server, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        forgotten = KafkaNetSocket().socket(socket.AF_INET, socket.SOCK_STREAM, 0)
        forgotten.connect(server.getsockname())
        peer, _ = server.accept()
        with peer:
            del forgotten
            gc.collect()
            peer.settimeout(20)
            assert peer.recv(1) == b""
    assert not said


def _run(tests: str, tmp_path: Path, *fixtures: str) -> subprocess.CompletedProcess[str]:
    """Run these tests in a process of their own."""
    (tmp_path / "test_them.py").write_text(tests)
    names = ("no:randomly", "no:cacheprovider", "kit.fixtures.leftovers", "kit.fixtures.temporary", *fixtures)
    flags = [argument for name in names for argument in ("-p", name)]
    for warning in ("error", "ignore::DeprecationWarning"):
        flags += ["-W", warning]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *flags, f"--rootdir={tmp_path}", str(tmp_path)],
        cwd=tmp_path, capture_output=True, text=True, timeout=180, check=False,
        env={**os.environ, "PYTHONPATH": str(REPO / "tests")},
    )  # fmt: skip


def _counts(done: subprocess.CompletedProcess[str]) -> str:
    """Return what pytest counts of the tests of a run."""
    found = re.search(r"^(.*) in [\d.]+s$", done.stdout, re.MULTILINE)
    assert found is not None, (done.returncode, done.stdout)
    return found[1]


def _open_sockets() -> set[int]:
    """Return the descriptors of the Internet sockets that are open, also of those that are garbage."""
    sockets = [each for each in gc.get_objects() if isinstance(each, socket.socket)]
    return {each.fileno() for each in sockets if each.family == socket.AF_INET} - {-1}
