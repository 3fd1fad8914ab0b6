"""An error outside of a command's work reaches the user as its sentence."""

from __future__ import annotations

import pytest

from pyspark_kafka._ops.cli import main
from pyspark_kafka.errors import SetupError


def test_error_is_one_line_in_a_pipe_whatever_the_width(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = SetupError("PySpark is needed, and is not there. " * 5, condition="PYSPARK_MISSING", hint="Install it.")

    def refuse() -> None:
        raise error

    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(main, "app", refuse)
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"{error}\n"
