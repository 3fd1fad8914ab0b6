"""The error of a commit topic that the user may not see or create."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from pyspark_kafka._client.client.wire.missing_rights import Right
from pyspark_kafka._connector.sink.driver.commit_topic import CommitTopic
from pyspark_kafka.errors import AccessError


def refusal(*rights: Right) -> AccessError:
    error = AccessError("Refused.", code=29, condition="TOPIC_AUTHORIZATION_FAILED")
    error.rights = rights
    return error


@pytest.mark.parametrize(
    ("failing", "reason", "operation", "hint"),
    [
        ("_learn", "This user may not see it, or it is not there", "Read", "replicas), or grant Create as well."),
        ("_create", "It is not there, and this user may not create it", "Create", "Or create it (cleanup.policy=comp"),
    ],
)
def test_topic_that_is_out_of_reach_names_the_right_and_how_to_create_it(
    monkeypatch: pytest.MonkeyPatch, failing: str, reason: str, operation: str, hint: str
) -> None:
    topic = CommitTopic(Mock(), "commits")
    monkeypatch.setattr(topic, "_learn", lambda: False)
    monkeypatch.setattr(topic, failing, Mock(side_effect=refusal(Right("Describe", "topic", "commits"))))
    with pytest.raises(AccessError) as caught:
        topic.ensure()
    text = str(caught.value)
    assert text.startswith(
        "[COMMIT_TOPIC_UNUSABLE] The topic 'commits' keeps the commit markers of exactly-once writes."
    )
    assert f"{reason}. Nothing was written. Refused." in text
    assert f"--operation {operation}" in text
    assert hint in text


def test_credentials_that_are_refused_are_the_error() -> None:
    error = refusal()
    topic = CommitTopic(Mock(fetch_metadata=Mock(side_effect=error)), "commits")
    with pytest.raises(AccessError) as caught:
        topic.ensure()
    assert caught.value is error
