"""What a signal does to the demo where Python drops the exception that it raises."""

from __future__ import annotations

import io
import logging
import os
import signal
import sys
import threading
from contextlib import suppress
from typing import Any

import pytest
from rich.console import Console

from pyspark_kafka._ops.cli import demo
from pyspark_kafka._ops.cli.common import interrupts


def test_next_step_raises_the_interrupt_that_python_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "disable", lambda _: None)
    interrupts.raise_if_interrupted()
    with interrupts.interruptible():
        # As within a finalizer.
        with suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            interrupts.raise_if_interrupted()
    with interrupts.interruptible():
        interrupts.raise_if_interrupted()


@pytest.mark.parametrize("step", range(1, 25))
def test_second_signal_at_any_step_of_the_first_interrupts(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    monkeypatch.setattr(logging, "disable", lambda _: None)
    # Other tests of the process are not interrupted.
    monkeypatch.setattr(interrupts, "_came", [])
    left = [step]

    def trace(frame: Any, *_: Any) -> Any:
        left[0] -= frame.f_code.co_filename in {interrupts.__file__, threading.__file__}
        if left[0] == 0:
            signal.raise_signal(signal.SIGINT)
        return trace

    before = sys.gettrace()
    with interrupts.interruptible():
        sys.settrace(trace)
        try:
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        finally:
            sys.settrace(before)
    assert interrupts.was_interrupted()


class SignalledAtFlush(io.StringIO):
    """Takes what a console prints, and gets Ctrl-C at the moment its first text is out."""

    def __init__(self) -> None:
        super().__init__()
        self.signalled = False

    def flush(self) -> None:
        super().flush()
        if self.getvalue() and not self.signalled:
            self.signalled = True
            os.kill(os.getpid(), signal.SIGINT)


def test_lines_to_paste_are_printed_once_if_the_signal_comes_meanwhile() -> None:
    file = SignalledAtFlush()
    demo._keep_running(Console(file=file, soft_wrap=True), "127.0.0.1:9092")
    assert file.getvalue().count("Paste there:") == 1
    assert file.getvalue().endswith("Stopping. The broker and its files will be gone.\n")
