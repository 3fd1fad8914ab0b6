"""What a signal does to the demo where Python drops the exception that it raises."""

from __future__ import annotations

import logging
from contextlib import suppress

import pytest

from pyspark_kafka.cli import demo


def test_the_next_step_ends_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "disable", lambda _: None)
    demo._go_on()
    try:
        # As within a finalizer.
        with suppress(KeyboardInterrupt):
            demo._interrupt()
        with pytest.raises(KeyboardInterrupt):
            demo._go_on()
    finally:
        demo._interrupted.clear()
