"""The generated page of options."""

from __future__ import annotations

from pathlib import Path

from pyspark_kafka._client.options.catalogue import OPTIONS
from pyspark_kafka._client.options.page import render_options


def test_the_documentation_page_is_the_rendered_table() -> None:
    page = Path(__file__).parents[4] / "docs" / "options.md"
    assert page.read_text(encoding="utf-8") == render_options(), (
        "run: python -m pyspark_kafka._client.options.page > docs/options.md"
    )


def test_the_documentation_names_every_option() -> None:
    page = render_options()
    assert [option.name for option in OPTIONS if f"\n### `{option.name}`\n" not in page] == []


def test_the_documentation_shows_code_as_it_is_typed() -> None:
    page = render_options()
    assert "`sources/<sourceIndex>`" in page
    assert "&lt;" not in "".join(code for line in page.splitlines() for code in line.split("`")[1::2])


def test_an_entry_of_the_documentation_says_once_that_an_option_is_ours() -> None:
    assert [
        entry for entry in render_options().split("\n### ") if entry.lower().count("not an option of spark") > 1
    ] == []
