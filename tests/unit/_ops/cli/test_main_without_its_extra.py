"""The entry point where the extra `cli` is not installed."""

from __future__ import annotations

import sys

import pytest

from kit.texts import said
from pyspark_kafka.__main__ import main
from pyspark_kafka.version import install_command


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_program_without_its_packages_ends_with_the_command_that_installs_them(
    missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [each for each in sys.modules if each.startswith("pyspark_kafka._ops.cli.") and "__main__" not in each]:
        monkeypatch.delitem(sys.modules, name)
    for name in [each for each in sys.modules if each.startswith(f"{missing}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert said(capsys.readouterr().err) == (
        f"[CLI_PACKAGE_MISSING] The program pyspark-kafka needs the package '{missing}', which is not installed. "
        f"Nothing was done. Hint: Run {install_command('cli')}."
    )


def test_module_that_is_missing_for_another_reason_is_not_explained_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark_kafka._ops.cli.main", None)
    with pytest.raises(ModuleNotFoundError, match=r"pyspark_kafka\._ops\.cli\.main"):
        main()
