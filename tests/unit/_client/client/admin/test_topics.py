from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kit.fakes.clock import Clock
from kit.reading import FAST, options_for
from pyspark_kafka._client.client.admin.topics import NewTopic, create_topics
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka.errors import DeadlineError

_CREATED = SimpleNamespace(topics=[SimpleNamespace(name="t", error_code=0)])


@pytest.mark.parametrize(
    ("answered", "last_failure"),
    [
        # A look that only the end of the time cut short is not the reason.
        pytest.param(1, False, id="leaders-are-missing"),
        pytest.param(0, True, id="cluster-is-silent"),
    ],
)
def test_wait_for_leaders_that_ends_names_the_wait(
    answered: int, last_failure: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    deadline = Deadline(20_000, clock=clock, sleep=clock.sleep)
    looks: list[Any] = []

    def fetch_metadata(topics: Any, step: Deadline) -> Any:
        if not topics:
            return SimpleNamespace(controller_id=1)
        looks.append(topics)
        if len(looks) <= answered:
            return SimpleNamespace(topics={})
        clock.sleep(step.remaining_s())
        raise step.error("Waiting for the response")

    with KafkaClient(options_for([("localhost", 1)], **FAST)) as client:
        monkeypatch.setattr(client, "fetch_metadata", fetch_metadata)
        monkeypatch.setattr(client, "call", lambda *_, **__: _CREATED)
        with pytest.raises(DeadlineError, match=r"Waiting for leaders of new topics \(t\).* 20000 ms") as caught:
            create_topics(client, [NewTopic("t")], deadline)
    assert ("Last failure" in str(caught.value)) is last_failure
    assert len(looks) == answered + 1
