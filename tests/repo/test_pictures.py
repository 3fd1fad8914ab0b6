"""The pictures of the docs show what they are drawn from."""

from __future__ import annotations

import re

import pictures
from kit.pointers import REPO

_AGAIN = "draw it again: python tools/pictures.py"


def test_chart_is_drawn_from_the_table_of_the_throughput() -> None:
    rows = pictures.throughputs()
    assert len(rows) >= 9
    assert pictures.CHART.read_text() == pictures.chart(rows), _AGAIN


def test_chart_has_a_bar_for_each_figure_of_the_table() -> None:
    page = (REPO / "docs" / "performance.md").read_text()
    table = page.partition("## Throughput, compared with Spark's JVM connector")[2].partition("Peak memory")[0]
    figures = re.findall(r"^\| ([^|]+) \| ([\d.]+) M[^|]* \| ([\d.]+) M \|", table, re.MULTILINE)
    text = pictures.CHART.read_text()
    assert re.findall(r'<text x="16" y="\d+">(.*)</text>', text) == [name for name, _, _ in figures]
    values = re.findall(r'<text class="value"[^>]*>(.*)</text>', text)
    assert values == [value for _, *pair in figures for value in pair]
    widths = [
        float(width) for width in re.findall(r'<rect class="\w+" x="16" y="\d+" width="(\d+\.\d)" height="9"', text)
    ]
    assert sorted(values, key=float) == [value for _, value in sorted(zip(widths, values, strict=True))]


def test_card_shows_the_figures_of_today() -> None:
    assert pictures.shown_in(pictures.CARD) == pictures.shown_by_card(), _AGAIN


def test_picture_of_a_report_shows_the_page_of_today() -> None:
    assert pictures.shown_in(pictures.REPORT) == pictures.shown_by_report(), _AGAIN
