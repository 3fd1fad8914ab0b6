"""`pyspark-kafka options`: one option, options by a text, and nothing found."""

from __future__ import annotations

import json

import pytest

from kit.programs.cli import invoke


@pytest.mark.parametrize("name", ["kafka.fetch.max.bytes", "fetch.max.bytes", "KAFKA.Fetch.Max.Bytes"])
def test_option_is_shown_with_its_facts_and_its_page(name: str) -> None:
    shown = invoke("options", name)
    assert shown.exit_code == 0
    lines = dict(line.split(": ", 1) for line in shown.output.splitlines())
    assert (lines["option"], lines["in"], lines["status"]) == ("kafka.fetch.max.bytes", "read", "used")
    assert lines["page"].endswith("/options/#kafkafetchmaxbytes")
    assert "bytes" in lines["default"]


def test_names_keep_their_backquotes_and_links_are_words() -> None:
    shown = invoke("options", "pushDownPredicate").output
    assert "`load()`" in shown
    assert "see batch reads." in shown


def test_text_finds_options_by_name_and_by_description() -> None:
    found = json.loads(invoke("options", "checkpoint", "--json").output)
    assert found
    assert all("checkpoint" in f"{each['option']} {each['description']}".lower() for each in found)
    assert any("checkpoint" not in each["option"].lower() for each in found)


def test_all_options_are_lines_without_a_text() -> None:
    lines = invoke("options").output.splitlines()
    assert len(lines) > 200
    assert lines[0].split() == ["option", "status", "default"]


def test_option_that_is_not_there_is_a_finding_with_the_nearest_name() -> None:
    missed = invoke("options", "startingOfsets")
    assert missed.exit_code == 1
    assert missed.output.endswith("Did you mean startingOffsets?\n")
