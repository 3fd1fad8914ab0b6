"""Responses that do not fit their requests."""

from __future__ import annotations

import pytest

from kit.texts import said
from pyspark_kafka._client.client.waiting.retry import RetryAction, decide
from pyspark_kafka._client.client.wire.completeness import match_entries
from pyspark_kafka.errors import ProtocolError


def test_entries_are_returned_in_the_order_asked_and_others_are_ignored() -> None:
    entries = [("foreign", 9), ("b", 2), ("a", 1), ("foreign", 8)]
    assert list(match_entries(["a", "b"], entries, "Metadata", "h:9092").items()) == [("a", 1), ("b", 2)]


def test_nothing_asked_needs_no_entry() -> None:
    assert match_entries([], [("a", 1)], "Metadata", "h:9092") == {}


@pytest.mark.parametrize(
    ("entries", "problem"),
    [([], "lacks a, b"), ([("a", 1)], "lacks b"), ([("a", 1), ("b", 2), ("a", 1)], "names a twice")],
)
def test_response_that_does_not_fit_is_an_error_to_be_retried(entries: list[tuple[str, int]], problem: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        match_entries(["a", "b"], entries, "CreateTopics", "h:9092")
    assert said(caught.value) == (
        f"[RESPONSE_INCOMPLETE] The response of h:9092 to CreateTopics {problem}. Nothing of it was used. "
        "Hint: Check proxies and gateways between this machine and the broker."
    )
    assert decide(caught.value).action is RetryAction.REFRESH
