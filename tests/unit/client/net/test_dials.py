"""Connections made side by side: what is left of them afterwards."""

from __future__ import annotations

import threading

import pytest

from pyspark_kafka.client.deadline import Deadline
from pyspark_kafka.client.net import dials as dials_module
from pyspark_kafka.client.net.buffers import FrameBuffers
from pyspark_kafka.client.net.dials import Dials
from pyspark_kafka.options import ConnectionOptions


def test_a_thread_that_has_not_begun_yet_is_waited_for_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = threading.Event()
    real = Dials._run

    def late(self: Dials[int]) -> None:
        begin.wait(30)
        real(self)

    monkeypatch.setattr(Dials, "_run", late)
    monkeypatch.setattr(dials_module, "_JOINED_WITHIN_S", 30.0)
    before = threading.enumerate()
    dials: Dials[int] = Dials(ConnectionOptions((("127.0.0.1", 1),)), FrameBuffers())
    dials.start(0, "127.0.0.1", 1, Deadline(1_000))
    timer = threading.Timer(0.1, begin.set)
    timer.start()
    dials.close()
    left = [thread for thread in threading.enumerate() if thread not in before and thread is not timer]
    assert left == []
    timer.join()
