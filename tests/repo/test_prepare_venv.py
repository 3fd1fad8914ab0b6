"""tools/prepare_venv.py, which every target of the Makefile runs first: long steps print lines in a log."""

from __future__ import annotations

import re
import sys

import pytest

import prepare_venv


def test_long_command_prints_what_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(prepare_venv, "INTERVAL_S", 0.05)
    assert prepare_venv.run([sys.executable, "-c", "import time; time.sleep(0.5)"], "pip install x") == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == "pip install x …"
    assert len(lines) >= 2
    assert all(re.fullmatch(r"pip install x … \d+ s", line) for line in lines)


def test_quick_command_prints_one_line_and_its_exit_code_is_returned(capsys: pytest.CaptureFixture[str]) -> None:
    assert prepare_venv.run([sys.executable, "-c", "raise SystemExit(7)"], "pip install x") == 7
    assert capsys.readouterr().out == "pip install x …\n"


def test_interval_is_shorter_than_the_promised_five_seconds() -> None:
    assert prepare_venv.INTERVAL_S < 5
