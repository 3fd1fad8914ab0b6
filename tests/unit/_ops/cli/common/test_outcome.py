"""How commands end."""

from __future__ import annotations

import pytest
import typer

from pyspark_kafka._ops.cli.common.outcome import ExitStatus, Interrupted, run_command
from pyspark_kafka.errors import ConnectorError, DeadlineError, OptionError, TransportError


@pytest.mark.parametrize("status", list(ExitStatus))
def test_command_ends_with_the_status_of_its_work(status: ExitStatus) -> None:
    with pytest.raises(typer.Exit) as ended:
        run_command(lambda: status)
    assert ended.value.exit_code == status


def test_error_is_printed_as_its_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> ExitStatus:
        raise OptionError("A text with [brackets].", condition="OPTION_MISSING", hint="Add one.")

    with pytest.raises(typer.Exit) as ended:
        run_command(work)
    told = capsys.readouterr()
    assert (ended.value.exit_code, told.out) == (ExitStatus.REFUSED, "")
    assert "A text with [brackets]." in told.err
    assert "Hint: Add one." in told.err


@pytest.mark.parametrize("kind", [TransportError, DeadlineError])
def test_cluster_that_is_away_has_a_status_of_its_own(kind: type[ConnectorError]) -> None:
    def work() -> ExitStatus:
        raise kind("Away.", condition="BOOTSTRAP_FAILED")

    with pytest.raises(typer.Exit) as ended:
        run_command(work)
    assert ended.value.exit_code == 4


def test_interrupted_command_says_what_it_leaves(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> ExitStatus:
        raise KeyboardInterrupt

    with pytest.raises(typer.Exit) as ended:
        run_command(work, on_interrupt="The file is gone.")
    assert ended.value.exit_code == ExitStatus.INTERRUPTED
    assert capsys.readouterr().err == "Interrupted. The file is gone.\n"


def test_work_that_knows_what_it_leaves_is_quoted(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> ExitStatus:
        raise Interrupted("File \x1b is half written.")

    with pytest.raises(typer.Exit):
        run_command(work)
    assert capsys.readouterr().err == "Interrupted. File \\x1b is half written.\n"
