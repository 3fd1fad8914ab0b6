"""Whether executors reach the driver: a port that answers, one that does not, and one of another program."""

from __future__ import annotations

import socket
import threading
import time

from pyspark_kafka._ops.diagnosis.driver_port import DriverPort, ask_driver
from pyspark_kafka.continuous.channel.driver_side import open_listener


def test_executor_with_the_key_learns_the_time_of_the_driver() -> None:
    with DriverPort(open_listener("127.0.0.1", 0)) as opened:
        found = ask_driver("127.0.0.1", opened.port, opened.key, 20.0)
        assert (found["address"], found["reason"]) == (f"127.0.0.1:{opened.port}", "")
    assert abs(found["ahead_ms"]) <= found["error_ms"] + 50


def test_stranger_gets_no_answer_and_others_still_get_theirs() -> None:
    with DriverPort(open_listener("127.0.0.1", 0)) as opened:
        stranger = ask_driver("127.0.0.1", opened.port, b"x" * len(opened.key), 20.0)
        assert stranger["reason"] == "another program answers there"
        assert "ahead_ms" not in stranger
        with socket.create_connection(("127.0.0.1", opened.port)):
            assert ask_driver("127.0.0.1", opened.port, opened.key, 20.0)["reason"] == ""


def test_closed_port_is_out_of_reach() -> None:
    with DriverPort(open_listener("127.0.0.1", 0)) as opened:
        port = opened.port
    assert "ConnectionRefusedError" in ask_driver("127.0.0.1", port, opened.key, 20.0)["reason"]


def test_another_program_that_never_answers_costs_the_timeout_only() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        found = ask_driver("127.0.0.1", silent.getsockname()[1], b"x" * 16, 0.1)
    assert "timed out" in found["reason"]
    assert time.monotonic() - began < 10


def test_closed_port_leaves_no_thread_that_accepts() -> None:
    with DriverPort(open_listener("127.0.0.1", 0)):
        assert any(thread.name == "check-driver-port" for thread in threading.enumerate())
    assert not any(thread.name == "check-driver-port" for thread in threading.enumerate())
