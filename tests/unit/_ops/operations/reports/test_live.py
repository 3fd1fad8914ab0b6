"""The live view of a notebook, with a query that tells what the test says."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import chain, repeat
from types import SimpleNamespace
from typing import Any

import pytest

from kit.waiting import eventually
from pyspark_kafka._ops.operations.reports import live
from pyspark_kafka._ops.operations.reports.live import LiveView, notebook_display
from pyspark_kafka.errors import CapabilityError

_AT = "2026-11-22T10:00:0{}.000Z"


class Query:
    """Tells of a batch more each time when it is asked."""

    def __init__(self) -> None:
        self.name = "orders <b>"
        self.active = True
        self.batches = 1
        self.fails = 0
        self.asked = 0
        # What asking whether it is active does, each True is a failure; afterwards it works.
        self.lost: Iterator[bool] = iter(())

    @property
    def isActive(self) -> bool:  # noqa: N802 - as PySpark has it
        self.asked += 1
        if next(self.lost, False):
            raise ConnectionError("the session is gone")
        return self.active

    @property
    def recentProgress(self) -> list[Any]:  # noqa: N802 - as PySpark has it
        if self.fails:
            self.fails -= 1
            raise ConnectionError("the server is away")
        durations = {"addBatch": 500, "triggerExecution": 900}
        told = [
            {
                "id": "q",
                "runId": "r",
                "batchId": n,
                "timestamp": _AT.format(n),
                "numInputRows": 10,
                "durationMs": durations,
            }
            for n in range(self.batches)
        ]
        # Spark keeps the last ones only.
        return [SimpleNamespace(json=json.dumps(each)) for each in told[-2:]]


@pytest.fixture
def query() -> Query:
    return Query()


@pytest.fixture
def plots_take_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests with many drawings that are about something else."""
    for name in ("stacked", "rate_plot", "phases_plot"):
        monkeypatch.setattr(live, name, lambda *_: None)


def shown_by(query: Query) -> tuple[LiveView, list[tuple[Any, str]]]:
    shown: list[tuple[Any, str]] = []
    return LiveView(query, 0.01, lambda figure, text, _: shown.append((figure, text))), shown


def test_view_goes_on_until_the_query_ends(query: Query) -> None:
    view, shown = shown_by(query)
    assert shown[0][1] == "orders <b>: 1 batches, 10 rows, 11 rows/s since the first, last batch 0"
    query.batches = 2
    eventually(lambda: "2 batches" in shown[-1][1])
    # It remembers batches that Spark has forgotten.
    query.batches = 4
    eventually(lambda: "3 batches" in shown[-1][1] or "4 batches" in shown[-1][1])
    query.active = False
    eventually(lambda: view.is_over)
    assert "last batch 3" in shown[-1][1]


def test_view_outlives_a_server_that_is_away(query: Query, caplog: pytest.LogCaptureFixture) -> None:
    view, shown = shown_by(query)
    query.fails = 3
    query.batches = 2
    eventually(lambda: "2 batches" in shown[-1][1])
    view.stop()
    assert view.is_over
    assert [record.message for record in caplog.records].count(
        "The live view cannot read the progress of the query; it tries again."
    ) == 1


@pytest.mark.usefixtures("plots_take_no_time")
def test_view_ends_if_the_query_can_no_longer_be_asked(query: Query, caplog: pytest.LogCaptureFixture) -> None:
    query.lost = repeat(True)
    view, _ = shown_by(query)
    eventually(lambda: view.is_over)
    ends = [record.message for record in caplog.records if record.message.startswith("The live view ends")]
    assert len(ends) == 1
    assert "could not be asked 30 times in a row" in ends[0]


@pytest.mark.usefixtures("plots_take_no_time")
def test_view_outlives_many_failures_that_are_not_in_a_row(query: Query) -> None:
    query.lost = chain([True] * 29, [False], [True] * 29)
    view, _ = shown_by(query)
    eventually(lambda: query.asked > 59)
    assert not view.is_over
    query.active = False
    eventually(lambda: view.is_over)


def test_program_that_is_no_notebook_is_told_so() -> None:
    with pytest.raises(CapabilityError, match="this program is none") as raised:
        notebook_display()
    assert raised.value.condition == "REPORT_NO_NOTEBOOK"


def test_notebook_gets_each_drawing_in_the_place_of_the_one_before(
    query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    published: list[tuple[bool, str, Any]] = []

    def publish(bundle: Any, *, raw: bool, display_id: str, update: bool) -> None:
        # An object would publish itself, in a place of its own.
        assert raw
        published.append((update, display_id, bundle))

    display = SimpleNamespace(display=publish)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=object, display=display))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    view = LiveView(query, 0.01, notebook_display())
    eventually(lambda: len(published) >= 6)
    view.stop()
    assert [update for update, _, _ in published[:4]] == [False, False, True, True]
    assert {name for _, name, _ in published} == {name for _, name, _ in published[:2]}
    heading, plot = published[0][2], published[1][2]
    assert "orders &lt;b&gt;" in heading["text/html"]
    assert plot["application/vnd.plotly.v1+json"]["data"]
    # For pages that have no script.
    assert "<tr><td>0</td><td>10</td><td>900</td></tr></table>" in plot["text/html"]
