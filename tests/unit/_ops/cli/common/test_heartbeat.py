"""Lines of a step that takes a while: in a log one every few seconds, on a terminal one that is redrawn."""

from __future__ import annotations

import io
import re
import time

import pytest
from rich.console import Console

from kit.waiting import eventually
from pyspark_kafka._client.client.waiting import stalls
from pyspark_kafka._ops.cli.common import heartbeat
from pyspark_kafka._ops.cli.common.heartbeat import Step
from pyspark_kafka.errors import TransportError


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "_INTERVAL_S", 0.02)


def log() -> Console:
    return Console(file=io.StringIO(), soft_wrap=True)


def lines_of(console: Console) -> list[str]:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_step_in_a_log_says_when_it_begins_and_that_it_still_waits() -> None:
    console = log()
    with Step(console, "Starting [x]"):
        eventually(lambda: len(lines_of(console)) >= 3)
    first, *later = lines_of(console)
    assert first == "Starting [x] …"
    assert all(re.fullmatch(r"Starting \[x\] … \d+ s", line) for line in later)


def test_step_ends_its_lines_with_the_block() -> None:
    console = log()
    with Step(console, "Starting"):
        pass
    count = len(lines_of(console))
    time.sleep(0.1)
    assert len(lines_of(console)) == count


def test_step_shows_what_it_waits_for_by_now() -> None:
    console = log()
    with Step(console, "Starting") as step:
        step.update("Downloading")
        eventually(lambda: any(line.startswith("Downloading … ") for line in lines_of(console)))


def test_step_on_a_terminal_is_redrawn_with_its_seconds() -> None:
    console = Console(file=io.StringIO(), force_terminal=True)
    with Step(console, "Starting"):
        eventually(lambda: re.search(r"Starting … \d+ s", "".join(lines_of(console))) is not None)
    assert "Starting …\n" not in "".join(lines_of(console))


def test_error_in_the_block_is_raised_and_ends_the_lines() -> None:
    console = log()
    with pytest.raises(ZeroDivisionError), Step(console, "Starting"):
        1 / 0  # noqa: B018 - raises
    count = len(lines_of(console))
    time.sleep(0.1)
    assert len(lines_of(console)) == count


def test_step_that_is_over_soon_shows_nothing_if_it_is_to_be_quiet() -> None:
    console = log()
    with Step(console, "Looking", quiet_s=3_600):
        pass
    assert lines_of(console) == []


def test_step_that_takes_longer_than_its_quiet_time_is_shown() -> None:
    console = log()
    with Step(console, "Looking", quiet_s=0.01):
        eventually(lambda: len(lines_of(console)) >= 2)
    assert lines_of(console)[0] == "Looking …"


def test_progress_of_a_command_is_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    told: list[str] = []

    def has_told() -> bool:
        found = capsys.readouterr()
        assert found.out == ""
        told.append(found.err)
        return "Looking …" in "".join(told)

    with heartbeat.progress("Looking", quiet_s=0.01):
        eventually(has_told)


def test_progress_of_a_command_names_the_last_failure_while_attempts_fail(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    error = TransportError("a:1 refuses the connection. It may be down.", condition="BROKER_UNREACHABLE", hint="Look.")
    told: list[str] = []

    def has_told(pattern: str) -> bool:
        told.extend(capsys.readouterr().err.splitlines())
        return re.fullmatch(pattern, told[-1] if told else "") is not None

    with heartbeat.progress("Looking", quiet_s=0.01):
        stalls.note_failure(error)
        eventually(lambda: has_told(r"Looking \(a:1 refuses the connection\) … \d+ s"))
        with stalls.Stall(lambda: "reading", stalls.Contact()) as wait:
            wait.failed(TransportError("b:1 closed the connection.", condition="BROKER_UNREACHABLE"))
        eventually(lambda: has_told(r"Looking \(b:1 closed the connection\) … \d+ s"))
        monkeypatch.setattr(heartbeat, "_FAILURE_S", 0.0)
        eventually(lambda: has_told(r"Looking … \d+ s"))
    stalls.note_failure(error)


def test_step_shows_a_name_as_it_is_but_for_control_characters() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=200, color_system=None)
    with Step(console, "Reading [/x]\x1b]52;c;aGk=\x07") as step:
        eventually(lambda: r"Reading [/x]\x1b]52;c;aGk=\x07 … " in "".join(lines_of(console)))
        step.update("Writing [/y]\x07")
        eventually(lambda: r"Writing [/y]\x07 … " in "".join(lines_of(console)))
