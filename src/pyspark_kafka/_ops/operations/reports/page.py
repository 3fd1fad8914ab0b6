"""A report as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark_kafka._ops.operations.reports.plots import html_of, script
from pyspark_kafka.errors import MissingDependencyError
from pyspark_kafka.version import install_command

_TEMPLATE = "page.html"


@dataclass(frozen=True, slots=True)
class Tile:
    """One metric in large type.

    Attributes:
        name: its name.
        value: its value as text.
    """

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class ReportTable:
    """Rows of text.

    Attributes:
        title: above it.
        headings: of the columns.
        rows: each with a cell for each heading.
        numbers: the columns with numbers, counted from 0.
        note: below it; empty for none.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: frozenset[int] = frozenset()
    note: str = ""


@dataclass(frozen=True, slots=True)
class ReportPage:
    """The content of a page, in its order.

    Attributes:
        title: the first line.
        subtitle: below it.
        headline: the state of the query, if it needs attention; otherwise empty.
        sentences: the summary.
        warnings: the warnings.
        tiles: metrics in large type.
        plots: figures of plotly, by a short name.
        tables: below the plots.
        footer: the last line.
    """

    title: str
    subtitle: str
    headline: str
    sentences: Sequence[str]
    warnings: Sequence[str]
    tiles: Sequence[Tile]
    plots: Mapping[str, Any] = field(hash=False)
    tables: Sequence[ReportTable]
    footer: str


def render_page(page: ReportPage) -> str:
    """Return the page. Texts are escaped: names of topics and queries can be any text.

    Raises:
        MissingDependencyError: a package of the extra `report` is missing.
    """
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - of the extra report
        from markupsafe import Markup  # noqa: PLC0415
    except ImportError as error:
        raise MissingDependencyError(
            "A report needs the package jinja2, which is not installed. No page was written.",
            condition="REPORT_PACKAGE_MISSING",
            hint=f"Run {install_command('report')}.",
            parameters={"package": "jinja2"},
        ) from error
    folder = FileSystemLoader(Path(__file__).parent)
    environment = Environment(loader=folder, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    # The page has the titles: a plot cuts what is wider than itself.
    titles = {name: plot.layout.title.text for name, plot in page.plots.items()}
    plots = {name: Markup(part) for name, part in html_of(page.plots).items()}  # noqa: S704 - plotly escapes
    return environment.get_template(_TEMPLATE).render(page=page, titles=titles, plots=plots, script=Markup(script()))  # noqa: S704
