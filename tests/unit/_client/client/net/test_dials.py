"""Connections made side by side: what is left of them afterwards."""

from __future__ import annotations

import threading

import pytest

from kit.fakes.threads import ThreadOverTheLimit
from kit.waiting import PATIENCE_S
from pyspark_kafka._client.client.net import dials as dials_module
from pyspark_kafka._client.client.net.buffers import FrameBuffers
from pyspark_kafka._client.client.net.dials import Dials
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.options import ConnectionOptions
from pyspark_kafka.errors import TransportError

REFUSED = TransportError("Connecting to 127.0.0.1:1 failed: refused.", condition="CONNECTION_FAILED", hint="Look.")


def refused() -> None:
    raise REFUSED


def test_a_thread_that_has_not_begun_yet_is_waited_for_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = threading.Event()
    real = Dials._run

    def late(self: Dials[int]) -> None:
        begin.wait(PATIENCE_S)
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


def test_connection_is_not_begun_if_its_thread_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    dials: Dials[int] = Dials(ConnectionOptions((("127.0.0.1", 1),)), FrameBuffers(), max_threads=1)
    monkeypatch.setattr(dials_module, "open_connection", lambda *_arguments, **_options: refused())
    with monkeypatch.context() as full:
        full.setattr(threading, "Thread", ThreadOverTheLimit)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            dials.start(0, "127.0.0.1", 1, Deadline(1_000))
    assert len(dials) == 0
    # The only thread is free for another try.
    dials.start(0, "127.0.0.1", 1, Deadline(30_000))
    dials.wait(PATIENCE_S)
    ((key, outcome),) = dials.take_outcomes()
    assert (key, str(outcome)) == (0, str(REFUSED))
    dials.close()


def test_dials_close_their_sockets_after_a_thread_could_not_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    dials: Dials[int] = Dials(ConnectionOptions((("127.0.0.1", 1),)), FrameBuffers())
    with monkeypatch.context() as full:
        full.setattr(threading, "Thread", ThreadOverTheLimit)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            dials.start(0, "127.0.0.1", 1, Deadline(1_000))
    wake = dials._wake
    assert wake is not None
    dials.close()
    assert [sock.fileno() for sock in wake] == [-1, -1]
