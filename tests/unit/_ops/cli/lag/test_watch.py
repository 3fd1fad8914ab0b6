"""Looking again and again: with the report before, through failures, until Ctrl-C."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from pyspark_kafka._ops.cli.lag.watch import History, watch
from pyspark_kafka._ops.operations.lag.values import LagReport, LagState, PartitionLag
from pyspark_kafka.errors import TransportError

AWAY = TransportError("Nobody is there.", condition="BOOTSTRAP_FAILED")


def report(behind: int) -> LagReport:
    return LagReport("g", behind, None, (PartitionLag("t", 0, LagState.KNOWN, 0, 0, behind, behind, 0),))


def looks(
    *outcomes: LagReport | TransportError,
) -> tuple[Callable[[LagReport | None], LagReport], list[LagReport | None]]:
    waiting, given = list(outcomes), list[LagReport | None]()

    def look(before: LagReport | None) -> LagReport:
        given.append(before)
        if not waiting:
            raise KeyboardInterrupt
        found = waiting.pop(0)
        if isinstance(found, TransportError):
            raise found
        return found

    return look, given


@pytest.mark.parametrize("terminal", [True, False])
def test_watch_shows_each_look_and_passes_the_one_before(terminal: bool) -> None:
    look, given = looks(report(5), AWAY, report(7))
    out, waits = io.StringIO(), list[float]()
    console = Console(file=out, force_terminal=terminal, width=160, height=40, color_system=None)
    with pytest.raises(KeyboardInterrupt):
        watch(console, look, 3.0, every=False, pause=waits.append)
    assert given == [None, report(5), report(5), report(7)]
    assert waits == [3.0, 3.0, 3.0]
    text = out.getvalue()
    assert "[BOOTSTRAP_FAILED] Nobody is there." in text
    assert "7" in text


def test_watch_ends_if_the_reader_of_a_pipe_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    look, given = looks(report(5), report(7), report(9))
    left = iter([False, True])
    monkeypatch.setattr("pyspark_kafka._ops.cli.lag.watch.is_left", lambda: next(left))
    watch(Console(file=io.StringIO(), force_terminal=False), look, 3.0, every=False, pause=lambda _: None)
    assert given == [None, report(5)]


def test_watch_ends_if_the_first_look_fails() -> None:
    look, _ = looks(AWAY)
    with pytest.raises(TransportError):
        watch(Console(file=io.StringIO()), look, 1.0, every=False, pause=lambda _: None)


def test_history_keeps_the_last_looks_of_rows_that_are_there() -> None:
    history = History(every=False)
    for behind in range(30):
        history.add_lag_report(report(behind))
    assert list(history.values["t-0"]) == list(range(10, 30))
    history.add_lag_report(LagReport("g", 0, None, ()))
    assert history.values == {}


def test_history_has_no_look_whose_number_is_unknown() -> None:
    history = History(every=False)
    unknown = PartitionLag("t", 0, LagState.UNKNOWN, 0, 0, None, None, 0)
    history.add_lag_report(report(5))
    history.add_lag_report(LagReport("g", 0, None, (unknown,)))
    history.add_lag_report(report(7))
    assert list(history.values["t-0"]) == [5.0, 7.0]
