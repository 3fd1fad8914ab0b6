"""The programs of docs/how-it-works.md that need no Spark print what the page shows."""

from __future__ import annotations

from typing import Any

import pytest

from kit.pointers import REPO, programs_with_output


def test_steps_without_spark_print_the_output_of_the_page(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(REPO)
    names: dict[str, Any] = {}
    *before_spark, (last, _) = programs_with_output("how-it-works.md")
    assert "SparkSession" in last
    for program, printed in before_spark:
        exec(program, names)  # noqa: S102 - our own page
        assert capsys.readouterr().out == printed
