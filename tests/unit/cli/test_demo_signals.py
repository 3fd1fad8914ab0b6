"""What a signal does to the demo where Python drops the exception that it raises."""

from __future__ import annotations

import io
import logging
import os
import signal
from contextlib import suppress

import pytest
from rich.console import Console

from pyspark_kafka.cli import demo
from pyspark_kafka.cli.common import interrupts


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
