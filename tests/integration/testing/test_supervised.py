"""A process that is supervised: whose answer is whose."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO

import pytest

from kit.waiting import PATIENCE_S
from pyspark_kafka.testing.supervised import SupervisedProcess


class InterruptedPipe:
    """The answers of a supervisor; the wait for the first one meets an interrupt."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._is_interrupted = False

    def readline(self) -> bytes:
        if not self._is_interrupted:
            self._is_interrupted = True
            raise KeyboardInterrupt
        return self._pipe.readline()

    def close(self) -> None:
        self._pipe.close()


def test_answer_is_the_one_to_its_request_after_an_interrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "supervised"
    folder.mkdir()
    process = SupervisedProcess(folder, graceful=False)
    try:
        pipe = process._supervisor.stdout
        assert pipe is not None
        monkeypatch.setattr(process._supervisor, "stdout", InterruptedPipe(pipe))
        with pytest.raises(KeyboardInterrupt):
            _ = process.running
        assert process.start([sys.executable, "-c", "input()"], tmp_path / "log") > 0
        assert process.wait(PATIENCE_S)
        assert process.exit_code() == 1
    finally:
        process.close()
