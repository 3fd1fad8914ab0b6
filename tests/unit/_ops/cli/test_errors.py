"""`pyspark-kafka errors`: one condition, conditions by a text, and nothing found."""

from __future__ import annotations

import json

import pytest

from kit.programs.cli import invoke


@pytest.mark.parametrize("text", ["UNKNOWN_TOPIC", "unknown_topic", "[UNKNOWN_TOPIC] Topic 'x' does not exist"])
def test_condition_is_explained_in_any_form_of_its_error(text: str) -> None:
    shown = invoke("errors", text)
    assert shown.exit_code == 0
    assert shown.output.startswith("UNKNOWN_TOPIC (")
    assert shown.output.endswith("/errors/#unknown_topic\n")


def test_names_keep_their_backquotes_and_links_are_words() -> None:
    lines = invoke("errors", "OUTAGE_TOO_LONG").output.splitlines()
    assert lines[1] == "A query waited for brokers for as long as `outageTimeout` allows."
    assert lines[3].endswith("See outages.")


def test_text_finds_conditions_by_what_happened() -> None:
    found = json.loads(invoke("errors", "truststore", "--json").output)
    assert "TLS_FILES_INVALID" in [each["condition"] for each in found]


def test_error_code_of_a_broker_has_its_number() -> None:
    assert invoke("errors", "not_leader_or_follower").output.startswith("NOT_LEADER_OR_FOLLOWER (6)")


def test_condition_that_is_not_there_is_a_finding() -> None:
    missed = invoke("errors", "NO_SUCH_CONDITION")
    assert (missed.exit_code, missed.output) == (
        1,
        "No condition has 'NO_SUCH_CONDITION' in its name or description.\n",
    )
