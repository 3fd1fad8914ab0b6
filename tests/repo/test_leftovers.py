"""A test that fails fails alone: what it left open is not reported in the tests after it."""

from __future__ import annotations

import gc
import os
import re
import socket
import subprocess
import sys
import warnings
from typing import TYPE_CHECKING

import pytest
from kafka import KafkaConsumer
from kafka.errors import KafkaError
from kafka.net import KafkaNetSocket

from kit.pointers import REPO

if TYPE_CHECKING:
    from pathlib import Path

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


def test_only_the_test_that_leaves_a_socket_fails(tmp_path: Path) -> None:
    (tmp_path / "test_them.py").write_text(_TESTS)
    plugins = ("-p", "no:randomly", "-p", "no:cacheprovider", "-p", "kit.fixtures.leftovers")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", *plugins, f"--rootdir={tmp_path}", str(tmp_path)],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHONPATH": str(REPO / "tests")},
    )  # fmt: skip
    assert re.findall(r"^(.*) in [\d.]+s$", done.stdout, re.MULTILINE) == ["1 failed, 1 passed"], done.stdout


def test_kafka_python_leaves_no_socket_of_a_broker_that_is_gone() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        host, port = free.getsockname()
    before = _open_sockets()
    with pytest.raises(KafkaError):
        KafkaConsumer(bootstrap_servers=f"{host}:{port}", bootstrap_timeout_ms=500)
    assert _open_sockets() <= before


def test_socket_that_kafka_python_forgets_is_closed_and_warns_nobody() -> None:
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


def _open_sockets() -> set[int]:
    """Return the descriptors of the Internet sockets that are open, also of those that are garbage."""
    sockets = [each for each in gc.get_objects() if isinstance(each, socket.socket)]
    return {each.fileno() for each in sockets if each.family == socket.AF_INET} - {-1}
